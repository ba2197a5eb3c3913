"""A broker as the controller sees it."""

from enum import IntEnum

import msgspec

from state.ids import NO_TIME
from state.level import NO_LEVEL
from state.registration import Feature, Listener


class BrokerState(IntEnum):
    """The life of a registered broker: fenced -> active -> controlled_shutdown -> fenced.

    Decisions have two more states, which are never stored: ``shutdown_allowed`` tells a broker that it may stop, and
    ``unregistered`` says that it is gone.
    """

    fenced = 0
    active = 1
    controlled_shutdown = 2
    shutdown_allowed = 3
    unregistered = 4


# The states that a registered broker can be in.
REGISTERED_STATES = (BrokerState.active, BrokerState.fenced, BrokerState.controlled_shutdown)


class Broker(msgspec.Struct, frozen=True, array_like=True):
    """A broker's registration (KIP-631)."""

    broker: int
    # The seq of the event that registered it.
    broker_epoch: int
    incarnation: str
    # active: may lead and join an ISR (KIP-841). controlled_shutdown: serves what it has not handed over yet.
    state: BrokerState
    rack: str | None
    listeners: tuple[Listener, ...]
    # The directories that it can read; behind a gateway, their ids.
    log_dirs: tuple[str, ...]
    # From when on its silence counts, by the engine's clock. Behind a gateway, NO_TIME before the first heartbeat and
    # after a controlled shutdown.
    last_contact_ms: int
    # Behind a gateway: directories of this or an earlier registration that it cannot read now.
    offline_log_dirs: tuple[str, ...] = ()
    features: tuple[Feature, ...] = ()
    # Whether it is a broker of Kafka 4, which speaks through a gateway.
    is_kraft: bool = False
    # When its connection was lost; NO_TIME if it was heard since.
    connection_lost_ms: int = NO_TIME
    # When it was last heard, plus the time in which no controller or gateway could hear it.
    heard_ms: int = NO_TIME
    # Whether it was heard, or its connection lost, since the clock last moved. The clock's next time counts for that.
    heard_since_tick: bool = False
    lost_since_tick: bool = False
    # The highest level that a mock broker supports.
    level: int = NO_LEVEL
    # Behind a gateway: directories that are to get no new replicas (KIP-1066). Stored from level 2 on.
    cordoned_log_dirs: tuple[str, ...] = ()

    @property
    def has_several_dirs(self) -> bool:
        """Whether it has or had several log directories, so that it says where each replica is."""
        return self.is_kraft and len(self.log_dirs) + len(self.offline_log_dirs) > 1

    @property
    def is_cordoned(self) -> bool:
        """Whether it is to get no new replicas, because all its directories are cordoned."""
        return bool(self.cordoned_log_dirs) and set(self.log_dirs) <= set(self.cordoned_log_dirs)

    @property
    def is_active(self) -> bool:
        """Whether the broker may lead and join an ISR."""
        return self.state is BrokerState.active

    @property
    def is_live(self) -> bool:
        """Whether the broker serves requests: it is active or shutting down."""
        return self.state in (BrokerState.active, BrokerState.controlled_shutdown)
