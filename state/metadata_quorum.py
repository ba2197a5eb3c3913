"""The gateways that pose as Kafka's metadata quorum, and which of them leads it."""

import msgspec

from state.ids import NO_LEADER, NO_TIME
from state.level import FIRST_LEVEL


class Gateway(msgspec.Struct, frozen=True, array_like=True):
    """One gateway, in its newest run."""

    gateway: int
    # Identifies the run.
    incarnation: str
    # The gateways that its brokers know, in rising order.
    voters: tuple[int, ...]
    # When its silence begins, by the engine's clock: at the tick that follows its last heartbeat, or at a claim.
    last_contact_ms: int
    # It said that it stops. It no longer leads if another gateway can.
    is_stopping: bool = False
    # It writes the metadata log of KRaft brokers.
    is_kraft: bool = True
    # The brokers that it heard lately; None if it does not say.
    hears: tuple[int, ...] | None = None
    # The tick or claim before its last heartbeat. The silence of brokers behind it counts up to then.
    heard_ms: int = NO_TIME
    # Whether ``last_contact_ms`` waits for the clock to move on.
    heard_since_tick: bool = False
    # The highest level that it supports.
    level: int = FIRST_LEVEL


class Quorum(msgspec.Struct, frozen=True, array_like=True):
    """The gateway that leads."""

    voter: int = NO_LEADER
    # The leading gateway's.
    incarnation: str = ""
    voters: tuple[int, ...] = ()
    # Belongs to one incarnation of one leader, and is never used again.
    quorum_epoch: int = 0
    # When the leader was last heard, by the engine's clock; 0 if that is not known.
    heard_ms: int = 0
    # The leading gateway's: whether there is a metadata log.
    is_kraft: bool = False
    # When the newest no_op was decided, or else when the epoch began.
    no_op_ms: int = 0
    began_ms: int = 0
    # Whether a broker reached the leader in this epoch.
    was_reached: bool = False
    # Since when another gateway hears more brokers; NO_TIME if none does.
    outdone_ms: int = NO_TIME
