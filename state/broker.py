"""A broker as the controller sees it."""

from enum import IntEnum

import msgspec

from state.ids import NO_TIME
from state.registration import Feature, Listener


class BrokerState(IntEnum):
    """Where a registered broker stands.

    fenced -> active -> controlled_shutdown -> fenced; ``unregistered`` is said once, and then the
    broker is gone from the table. ``shutdown_allowed`` is said to a broker, never held.
    """

    fenced = 0
    active = 1
    controlled_shutdown = 2
    shutdown_allowed = 3
    unregistered = 4


class Broker(msgspec.Struct, frozen=True, array_like=True):
    """Hold one registration (KIP-631): ``broker_epoch`` is the ``seq`` that registered it.

    ``last_contact_ms`` is on the engine's clock; NO_TIME behind a gateway before its first heartbeat, and
    once it was let go. Only ``active`` brokers may lead or join an ISR
    (KIP-841); ``controlled_shutdown`` ones still serve what they have not yet handed over.
    ``connection_lost_ms`` is when an edge lost the connection, NO_TIME when it was heard since.
    ``offline_log_dirs`` only keeps its place: no rule asks for it.
    """

    broker: int
    broker_epoch: int
    incarnation: str
    state: BrokerState
    rack: str | None
    listeners: tuple[Listener, ...]
    log_dirs: tuple[str, ...]
    last_contact_ms: int
    offline_log_dirs: tuple[str, ...] = ()
    features: tuple[Feature, ...] = ()
    behind_gateway: bool = False
    connection_lost_ms: int = NO_TIME

    @property
    def is_active(self) -> bool:
        """Say whether the broker may lead and join an ISR."""
        return self.state is BrokerState.active

    @property
    def is_live(self) -> bool:
        """Say whether the broker serves requests: active, or on its way out."""
        return self.state in (BrokerState.active, BrokerState.controlled_shutdown)
