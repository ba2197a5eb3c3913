"""Whether an engine at rest may let its next tick wait.

The problem: an idle engine puts two ticks a second on the bus, and each used to start a batch. A batch in which nothing
is decided costs as much CPU as one with a decision, so an idle engine kept a quarter of a core busy.

The insight: decisions do not depend on how the log is cut into batches. So the ticks stay as frequent as they are, but
most of them wait for a later one, like heartbeats do (``isrflow/sqlite/deferrable.py``).

    heartbeats   .  .   .  .   .  .   .  .   .  .
    ticks        t   t   t   T   t   t   t   T        t waits, T starts a batch for all of them

A tick does not wait if something may be due at it, if an event came that may change something
(``controller_logic/rest.py`` knows both from the state), or if the tick before it has waited for long enough.

One heartbeat must not wait even for the next tick: that of a fenced broker that is ready to serve again.
"""

from collections.abc import Sequence

from bus.clock import steady_ms
from bus.interface import Bus
from controller_logic.replay import logged
from controller_logic.rest import asks_to_serve, changes_nothing, next_due_ms
from state.broker import BrokerState
from state.cluster import Cluster

# How long events wait at most. Heartbeats show the state of a broker so much later, and restarts read so much more.
WAIT_MS_MAX = 2_000
# More new events than these are not looked at, because such an engine does not rest.
EVENTS_READ_MAX = 2_000
BYTES_READ_MAX = 4 * 1024 * 1024


class Rest:
    """What an engine knows of whether it rests. Call one method at a time."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._shared: Cluster | None = None
        self._due_ms: int | None = None
        # Events up to here are decided, or change nothing.
        self._seen = 0
        # ``tick_is_wanted`` looks at the events after this one.
        self._looked = 0
        self._waited_from_ms = steady_ms()

    def decided(self, through: int, clusters: Sequence[Cluster]) -> None:
        """Take note of the state after a batch: all shards' parts of it."""
        self._shared = next((one for one in clusters if one.writes_cluster_decisions), None)
        self._due_ms = next_due_ms(clusters, self._shared.policy) if self._shared else None
        self._seen = max(self._seen, through)
        self._looked = max(self._looked, through)

    def tick_is_wanted(self) -> bool:
        """Say whether a fenced broker is ready to serve, and no batch is under way that may take its heartbeat in.

        Heartbeats are read only while a broker is fenced.
        """
        shared = self._shared
        if shared is None or not self._bus.defers or not _has_fenced(shared):
            return False
        if self._bus.due_seq(self._looked) > self._looked:
            return False
        entries = self._bus.recorded(self._looked, self._bus.last_seq(), EVENTS_READ_MAX, BYTES_READ_MAX)
        if not entries:
            return False
        self._looked = entries[-1].seq
        return any(asks_to_serve(one.event, shared) for one in logged(entries))

    def may_wait(self, time_ms: int) -> bool:
        """Say whether a tick at ``time_ms`` may wait for a later one. Call it once for each tick, before it is put.

        An event that comes between this call and the tick is seen before the next tick.
        """
        is_at_rest = self._is_at_rest(time_ms)
        now_ms = steady_ms()
        if is_at_rest and now_ms - self._waited_from_ms < WAIT_MS_MAX:
            return True
        self._waited_from_ms = now_ms
        return False

    def _is_at_rest(self, time_ms: int) -> bool:
        if not self._bus.defers or self._shared is None:
            return False
        if self._due_ms is not None and time_ms >= self._due_ms:
            return False
        return self._nothing_came(self._shared)

    def _nothing_came(self, shared: Cluster) -> bool:
        last = self._bus.last_seq()
        after, self._seen = self._seen, last
        entries = self._bus.recorded(after, last, EVENTS_READ_MAX, BYTES_READ_MAX)
        if (entries[-1].seq if entries else after) < last:
            return False
        policy = shared.policy
        return all(changes_nothing(one.event, shared, policy) for one in logged(entries))


def _has_fenced(shared: Cluster) -> bool:
    return any(broker.state == BrokerState.fenced for broker in shared.brokers.values())
