"""Events about brokers: they start, live, and stop."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from state.event import AdminEvent, Event
from state.level import NO_LEVEL
from state.limits import BrokerEpoch, Id, Level, Text, Texts
from state.registration import Feature, Listener


class BrokerRegister(Event, frozen=True, kw_only=True, tag="broker_register"):
    """A broker starts. Its broker_epoch will be this event's seq (KIP-631)."""

    broker: Id
    incarnation: Text
    rack: Text | None = None
    listeners: Annotated[tuple[Listener, ...], Meta(max_length=64)] = ()
    log_dirs: Texts = ()
    previous_broker_epoch: BrokerEpoch = -1
    features: Annotated[tuple[Feature, ...], Meta(max_length=64)] = ()
    # Whether it speaks through the gateway that leads the quorum. Its silence counts only while it could be heard.
    behind_gateway: bool = False
    # The highest level that a mock broker supports.
    level: Level = NO_LEVEL


class BrokerHeartbeat(Event, frozen=True, kw_only=True, tag="broker_heartbeat"):
    """A broker lives, and may ask to be fenced, to be unfenced or to shut down (KIP-631)."""

    broker: Id
    broker_epoch: BrokerEpoch
    want_fence: bool
    want_shutdown: bool
    caught_up: bool | None = None
    offline_log_dirs: Texts = ()
    # Who asks in the broker's name, in Kafka's form: an admin who has it fenced. Nothing is decided by it.
    principal: Text | UnsetType | None = UNSET
    # Set if they may have changed (KIP-1066).
    cordoned_log_dirs: Texts | UnsetType = UNSET


class BrokerConnectionLost(Event, frozen=True, kw_only=True, tag="broker_connection_lost"):
    """A gateway lost its connection to a broker. This is a hint: the session is what counts."""

    broker: Id
    broker_epoch: BrokerEpoch


class BrokerUnregister(AdminEvent, frozen=True, kw_only=True, tag="broker_unregister"):
    """An operator declares that a broker will not come back."""

    broker: Id


class ControlledShutdown(Event, frozen=True, kw_only=True, tag="controlled_shutdown"):
    """A broker that is about to stop asks to have its leaderships moved."""

    broker: Id
    broker_epoch: BrokerEpoch
