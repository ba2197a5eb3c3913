"""What gateways say about themselves."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from state.event import Event
from state.level import FIRST_LEVEL
from state.limits import Id, Ids, Level, Text, TimeMs


class GatewayStarted(Event, frozen=True, kw_only=True, tag="gateway_started"):
    """A gateway starts."""

    gateway: Id
    incarnation: Text
    # The gateways that its brokers know. gateway ∈ voters, or the event is rejected.
    voters: Annotated[tuple[Id, ...], Meta(min_length=1, max_length=64)]
    # It writes the metadata log of KRaft brokers. A gateway of ZooKeeper mode does not.
    is_kraft: bool = True
    # The highest level that it supports.
    level: Level = FIRST_LEVEL


class GatewayHeartbeat(Event, frozen=True, kw_only=True, tag="gateway_heartbeat"):
    """A gateway lives."""

    gateway: Id
    incarnation: Text
    # For how long since its last heartbeat it was held up and could hear no broker.
    late_ms: TimeMs = 0
    # It is about to stop.
    want_shutdown: bool = False
    level: Level = FIRST_LEVEL
    # The brokers that it heard lately, in rising order: within controller.quorum.fetch.timeout.ms if it leads. Without
    # this field it says nothing about them.
    hears: Ids | UnsetType = UNSET
