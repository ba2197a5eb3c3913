"""What gateways say of themselves."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from state.event import Event
from state.limits import Id, MetadataFormat, Text, TimeMs
from state.metadata_format import FIRST_FORMAT


class GatewayStarted(Event, frozen=True, kw_only=True, tag="gateway_started"):
    """A gateway starts, as one of the ``voters`` that its brokers know; it writes formats up to ``metadata_format``."""

    gateway: Id
    incarnation: Text
    voters: Annotated[tuple[Id, ...], Meta(min_length=1, max_length=64)]
    metadata_format: MetadataFormat = FIRST_FORMAT


class GatewayHeartbeat(Event, frozen=True, kw_only=True, tag="gateway_heartbeat"):
    """A gateway lives; it was held up for ``late_ms`` since its last heartbeat, and heard no broker meanwhile.

    One that ends in order says so by ``want_shutdown``.
    """

    gateway: Id
    incarnation: Text
    late_ms: TimeMs = 0
    want_shutdown: bool = False
    metadata_format: MetadataFormat | UnsetType = UNSET
