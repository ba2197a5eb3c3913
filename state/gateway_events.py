"""What gateways say about themselves."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from state.event import Event
from state.limits import Id, Ids, MetadataFormat, Text, TimeMs
from state.metadata_format import FIRST_FORMAT


class GatewayStarted(Event, frozen=True, kw_only=True, tag="gateway_started"):
    """A gateway starts."""

    gateway: Id
    incarnation: Text
    # The gateways that its brokers know. gateway ∈ voters, or the event is rejected.
    voters: Annotated[tuple[Id, ...], Meta(min_length=1, max_length=64)]
    # The newest format of the metadata log that it can write.
    metadata_format: MetadataFormat = FIRST_FORMAT


class GatewayHeartbeat(Event, frozen=True, kw_only=True, tag="gateway_heartbeat"):
    """A gateway lives."""

    gateway: Id
    incarnation: Text
    # How long it was held up since its last heartbeat, and could hear no broker.
    late_ms: TimeMs = 0
    # It is about to stop.
    want_shutdown: bool = False
    metadata_format: MetadataFormat | UnsetType = UNSET
    # The brokers that it heard lately, in rising order: within controller.quorum.fetch.timeout.ms if it leads. Without
    # this field it says nothing about them.
    hears: Ids | UnsetType = UNSET
