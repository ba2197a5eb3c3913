"""A gateway's view of the quorum and the brokers, and how far each broker has read the metadata log."""

import asyncio
from collections.abc import Callable, Iterable

import msgspec

from brokers.wire.server import Peer
from bus.clock import now_ms
from state.cluster import Cluster
from state.decisions import AnyDecision, BrokerDecision, QuorumDecision
from state.reason import Reason

# controlled.shutdown.max.retries.
SHUTDOWN_TRIES_MAX = 3
SERVING = ("active", "controlled_shutdown")
_REGISTERED = (Reason.BROKER_REGISTERED, Reason.BROKER_RESTARTED)


class BrokerView(msgspec.Struct):
    """One broker as decided."""

    broker_epoch: int
    state: str
    # A broker that has read the metadata log up to here has seen its own registration.
    registered_by: int
    shutdown_tries: int = 0
    may_stop: bool = False
    # Whether it was unfenced in this epoch. Since then it listens, until its process ends.
    has_served: bool = False

    @property
    def is_serving(self) -> bool:
        return self.state in SERVING


class QuorumView:
    """The leader of the quorum, the state of each broker, and how far each has read.

    ``fetching`` is called for each fetch with the broker, its epoch and the offset.
    """

    def __init__(self, gateway: int, incarnation: str, fetching: Callable[[int, int, int], None]) -> None:
        self._fetching = fetching
        self._gateway = gateway
        self._incarnation = incarnation
        self.leader = -1
        self.quorum_epoch = 0
        # Whether the leader is this run of this gateway.
        self.leads = False
        self.superseded = False
        self.brokers: dict[int, BrokerView] = {}
        # By broker, the offset of its last fetch: it has applied everything below, or is about to.
        self.fetched: dict[int, int] = {}
        self.fetched_ms: dict[int, int] = {}
        self.caught_up_ms: dict[int, int] = {}
        # By broker, the log's end at its last fetch.
        self._former_ends: dict[int, int] = {}
        self._peers: dict[int, Peer] = {}
        self._changed = asyncio.Event()

    def begin_from(self, cluster: Cluster, log_end: int) -> None:
        """Start from the committed state, which is in the metadata log before ``log_end``, or will be there soon."""
        self.leader, self.quorum_epoch = cluster.quorum.voter, cluster.quorum.quorum_epoch
        for broker in cluster.brokers.values():
            known = BrokerView(broker.broker_epoch, broker.state.name, log_end, has_served=broker.is_live)
            self.brokers[broker.broker] = known

    def apply(self, decisions: Iterable[AnyDecision], log_end: int) -> None:
        """Apply decisions whose records are in the metadata log before ``log_end``."""
        for decision in decisions:
            if isinstance(decision, QuorumDecision):
                self._quorum(decision)
            elif isinstance(decision, BrokerDecision):
                self._broker(decision, log_end)
        self._wake()

    def _quorum(self, decision: QuorumDecision) -> None:
        led = self.leads
        self.leader, self.quorum_epoch = decision.voter, decision.quorum_epoch
        self.leads = (decision.voter, decision.incarnation) == (self._gateway, self._incarnation)
        is_another_start = decision.voter == self._gateway and not self.leads
        self.superseded |= is_another_start and led
        if self.leads:
            # No broker has fetched from this leader yet. How far brokers read at the former leader is not known here.
            self.fetched.clear()

    def _broker(self, decision: BrokerDecision, log_end: int) -> None:
        if decision.state == "unregistered":
            self.brokers.pop(decision.broker, None)
            return
        known = self.brokers.get(decision.broker)
        if known is None or known.broker_epoch != decision.broker_epoch:
            known = self.brokers[decision.broker] = BrokerView(decision.broker_epoch, decision.state, log_end)
        elif decision.reason in _REGISTERED:
            # The engine was ahead of the log when this gateway started, or the broker amended its registration.
            known.registered_by = log_end
        if decision.reason == Reason.CONTROLLED_SHUTDOWN:
            known.shutdown_tries += 1
            known.may_stop = decision.state == "shutdown_allowed" or known.shutdown_tries >= SHUTDOWN_TRIES_MAX
        # ``shutdown_allowed`` is a message to the broker, which is still in its controlled shutdown.
        known.state = "controlled_shutdown" if decision.state == "shutdown_allowed" else decision.state
        known.has_served |= known.is_serving

    def has_fetched(self, broker: int, offset: int, log_end: int) -> None:
        """Note a broker's fetch from ``offset`` of a log that ends at ``log_end``.

        The broker has caught up now if it fetches from the log's end. If it fetches from what was the end at its
        previous fetch, it had caught up then.
        """
        known = self.brokers.get(broker)
        if known is None:
            return
        fetched_ms, former_end = self.fetched_ms.get(broker, -1), self._former_ends.get(broker, log_end)
        self.fetched_ms[broker], self._former_ends[broker] = now_ms(), log_end
        if offset >= log_end:
            self.caught_up_ms[broker] = self.fetched_ms[broker]
        elif offset >= former_end:
            self.caught_up_ms[broker] = fetched_ms
        if self.fetched.get(broker, -1) != offset:
            self.fetched[broker] = offset
            self._wake()
        self._fetching(broker, known.broker_epoch, offset)

    def connected(self, broker: int, peer: Peer) -> None:
        """Note on which connection a broker sends its heartbeats."""
        self._peers[broker] = peer

    def is_connected(self, broker: int) -> bool:
        """Return whether the connection of a broker's last heartbeat is open."""
        return broker in self._peers

    def disconnected(self, peer: Peer) -> int | None:
        """Return the broker whose heartbeats came on a connection that ended; None if no broker's did."""
        for broker, held in self._peers.items():
            if held is peer:
                del self._peers[broker]
                return broker
        return None

    async def until_followed(self, offset: int, but: int, timeout_ms: int) -> bool:
        """Wait until all active brokers except ``but`` have fetched from ``offset``. Return False at the time-out."""

        def followed() -> bool:
            others = [broker for broker, known in self.brokers.items() if known.state == "active" and broker != but]
            return all(self.fetched.get(broker, -1) >= offset for broker in others)

        try:
            async with asyncio.timeout(timeout_ms / 1000):
                while not followed():
                    await self._changed.wait()
        except TimeoutError:
            return False
        return True

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
