"""The cluster at one moment, as the page shows it."""

import msgspec

from bus.clock import now_ms, steady_ms
from sinks.web.partitions import Summary
from state.broker import Broker
from state.cluster import Cluster
from state.ids import NO_TIME
from state.shadow import age_of


class Observed(msgspec.Struct, frozen=True):
    """The cluster of which a bus is the shadow, and until where it was observed."""

    cluster_id: str
    # In the observed metadata log.
    offset: int
    time_ms: int
    # By the bus's clock: when the newest observation came; NO_TIME if no running reader is known.
    heard_ms: int = NO_TIME


def observed_in(cluster: Cluster) -> Observed | None:
    """Return the observed cluster; None if the cluster is led."""
    shadow = cluster.shadow
    if shadow is None:
        return None
    return Observed(shadow.cluster_id, shadow.last_offset, cluster.clock_ms, shadow.heard_ms)


class Picture(msgspec.Struct, frozen=True):
    """The cluster at one moment."""

    # 0 without a state.
    seq: int = 0
    # The bus's time at its newest tick.
    bus_clock_ms: int = 0
    # When this process committed it, by the steady clock; None if another one did.
    committed_steady_ms: int | None = None
    brokers: dict[int, Broker] = {}
    topics: int = 0
    partitions: int = 0
    summary: Summary = Summary()
    # None if the cluster is led on this bus.
    observed: Observed | None = None
    # Without an engine in this process: how long the oldest operation that is not decided has waited.
    waiting_ms: int = 0

    def age_ms(self) -> int | None:
        """Return its age: measured, or by the bus's clock if another process committed it. None without a state.

        The state of an observed cluster is old while an operation waits to be decided, and when its reader is silent.
        """
        if not self.seq:
            return None
        return max(self._undecided_ms(), self._unheard_ms())

    def is_unheard(self, old_after_ms: int) -> bool:
        """Return whether it is old because the reader of the observed cluster is silent, not for want of an engine."""
        return self._undecided_ms() <= old_after_ms < self._unheard_ms()

    def _unheard_ms(self) -> int:
        one = self.observed
        return 0 if one is None else age_of(one.heard_ms, one.time_ms, now_ms())

    def _undecided_ms(self) -> int:
        if self.committed_steady_ms is not None:
            return steady_ms() - self.committed_steady_ms
        if self.observed is not None:
            return self.waiting_ms
        return max(0, now_ms() - self.bus_clock_ms)
