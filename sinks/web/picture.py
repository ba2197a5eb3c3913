"""The cluster at one moment, as the page shows it."""

import msgspec

from bus.clock import now_ms, steady_ms
from sinks.web.partitions import Summary
from state.broker import Broker
from state.cluster import Cluster


class Observed(msgspec.Struct, frozen=True):
    """The cluster of which a bus is the shadow, and until where it was observed."""

    cluster_id: str
    # In the observed metadata log.
    offset: int
    time_ms: int


def observed_in(cluster: Cluster) -> Observed | None:
    """Return the observed cluster; None if the cluster is led."""
    shadow = cluster.shadow
    return None if shadow is None else Observed(shadow.cluster_id, shadow.last_offset, cluster.clock_ms)


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

        Nothing may happen in an observed cluster for long. Its state is old while an operation waits to be decided.
        """
        if not self.seq:
            return None
        if self.committed_steady_ms is not None:
            return steady_ms() - self.committed_steady_ms
        if self.observed is not None:
            return self.waiting_ms
        return max(0, now_ms() - self.bus_clock_ms)
