"""The metrics: count each batch, and render the counts for Prometheus."""

import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import HistogramMetricFamily, Metric, SummaryMetricFamily
from prometheus_client.registry import Collector

from bus.clock import now_ms, steady_ms
from bus.decided_runs import runs_in
from bus.interface import Decided
from conf.metric_series import plain_family
from sinks.kafka_metric_names import KAFKA
from sinks.metric_names import OWN, QUANTILES, Series
from sinks.metric_snapshot import SECONDS_BUCKETS, Histogram, MetricSnapshot, Recent, count_decisions
from sinks.resources import ResourceMeter
from sinks.web.partitions import Summary
from state.broker import BrokerState
from state.cluster import Cluster, Totals
from state.risk import ONE_FROM_OFFLINE


class Metrics(Collector):
    """A collector with the newest snapshot. The engine's threads replace it, and a scrape reads it."""

    def __init__(
        self,
        *,
        kafka_names: bool = True,
        controller_id: str = "",
        meter: ResourceMeter | None = None,
    ) -> None:
        self.series: tuple[Series, ...] = OWN + KAFKA if kafka_names else OWN
        self.registry = CollectorRegistry()
        self.registry.register(self)
        self._snapshot = MetricSnapshot(version=version("isrflow"), controller_id=controller_id)
        self._meter = meter
        self._lock = threading.RLock()

    @property
    def snapshot(self) -> MetricSnapshot:
        return self._snapshot

    def _replace(self, **changes: Any) -> None:
        with self._lock:
            self._snapshot = msgspec.structs.replace(self._snapshot, **changes)

    def in_phase(self, phase: str) -> None:
        """Record which phase of the start begins; none if the start is over."""
        self._replace(phase=phase, phase_steady_ms=steady_ms())

    def stands_by(self) -> None:
        """Record that this job waits to take over."""
        self._replace(standby=True)

    def follows(self, is_following: bool) -> None:
        """Record whether this job takes in what the active engine writes, while it waits to take over."""
        self._replace(following=is_following)

    def loaded(self) -> None:
        """Record that this job could take over at once."""
        self._replace(loaded=True)

    def looked(self) -> None:
        """Record that a standby looked whether it is its turn, and that all that it needs for that answered."""
        self._replace(looked_steady_ms=steady_ms())

    @property
    def decided_seq(self) -> int:
        """The last event that is decided, as far as this job knows; 0 before it takes over."""
        return self._snapshot.decided_seq

    def took_over(self, controller_epoch: int, decided_seq: int) -> None:
        """Record that this job now holds a controller epoch, and that events through ``decided_seq`` are decided."""
        with self._lock:
            takeovers = self._snapshot.takeovers + 1
            # The first batch may have been faster.
            decided_seq = max(decided_seq, self._snapshot.decided_seq)
            self._replace(
                decided_seq=decided_seq,
                last_seq=max(decided_seq, self._snapshot.last_seq),
                controller_epoch=controller_epoch,
                active=True,
                standby=False,
                following=False,
                takeovers=takeovers,
                took_over_steady_ms=steady_ms(),
            )

    def gave_up(self) -> None:
        """Record that this job no longer decides, because it was fenced or stops."""
        self._replace(active=False)

    def committed(
        self,
        *,
        decisions: Sequence[Decided],
        clusters: Sequence[Cluster],
        through: int,
        last_seq: int,
        now_ms: int,
        engine_ms: int,
        clock_steps: int = 0,
    ) -> None:
        """Count a committed batch: its decisions, and every shard's cluster state after it, the first with the brokers.

        ``now_ms`` is the time of the wall clock, ``engine_ms`` that of the engine's clock, which ticks carry. The wall
        clock was set ``clock_steps`` times.
        """
        counts = count_decisions(runs_in(decisions))
        delays = {max(0.0, (engine_ms - time_ms) / 1000): often for time_ms, often in counts.by_time_ms.items()}
        with self._lock:
            before = self._snapshot
            self._replace(
                decisions=Counter(before.decisions) + Counter(counts.by_reason),
                delay_seconds=before.delay_seconds.added(delays),
                recent_delays=before.recent_delays.added(delays),
                unclean=before.unclean + counts.unclean,
                failed_isr_updates=before.failed_isr_updates + counts.failed_isr_updates,
                fencings=_summed(before.fencings, counts.fencings),
                restarts=_summed(before.restarts, counts.restarts),
                isr_shrinks=_summed(before.isr_shrinks, _of_serving(counts.isr_shrinks, clusters)),
                last_batch_ms=now_ms,
                last_commit_steady_ms=steady_ms(),
                last_engine_ms=engine_ms,
                clock_steps=clock_steps,
                last_seq=max(last_seq, through),
                decided_seq=through,
                **_cluster_wide(clusters),
            )

    def failed_after_commit(self, part: str) -> None:
        """Count that a part of what follows a commit failed."""
        with self._lock:
            failed = Counter(self._snapshot.failed_after_commit)
            failed[part] += 1
            self._replace(failed_after_commit=failed)

    def batch_ended(self, *, duration_ms: float, phases_ms: Mapping[str, float], events: int) -> None:
        """Count a micro-batch as Spark reports it: its duration, its phases (``durationMs``), its input rows."""
        with self._lock:
            before = self._snapshot
            phases = dict(before.phase_seconds)
            for phase, spent_ms in phases_ms.items():
                phases[phase] = phases.get(phase, 0.0) + spent_ms / 1000
            self._replace(
                batches=before.batches + 1,
                events=before.events + events,
                batch_seconds=before.batch_seconds.added({duration_ms / 1000: 1}),
                recent_batches=before.recent_batches.added({duration_ms / 1000: events} if events else {}),
                phase_seconds=phases,
            )

    def at_risk(self, found: Summary | None) -> None:
        """Record the worst partitions at risk, and how many cannot lose their leader. None: neither is known."""
        one_from_offline = None if found is None else found.problems.get(ONE_FROM_OFFLINE, 0)
        self._replace(at_risk=() if found is None else found.rows, one_from_offline=one_from_offline)

    def bus_at(self, last_seq: int) -> None:
        """Record the newest event that a batch is due for, so that the lag also grows while no batch ends."""
        with self._lock:
            self._replace(last_seq=max(last_seq, self._snapshot.decided_seq))

    def blocked(self, records: int, lasted_ms: int, blocker: str) -> None:
        """Record that ``records`` cannot be decided and since when, and what keeps them from it; all empty if none."""
        with self._lock:
            self._replace(
                blocked_records=records,
                blocked_ms=lasted_ms,
                blocker=blocker,
                last_blocked_steady_ms=steady_ms() if records else self._snapshot.last_blocked_steady_ms,
            )

    def collect(self) -> Iterable[Metric]:
        """Render the snapshot. Prometheus' registry calls this for each scrape."""
        snapshot = msgspec.structs.replace(self._snapshot, scraped_steady_ms=steady_ms(), scraped_ms=now_ms())
        if self._meter:
            snapshot = msgspec.structs.replace(snapshot, resources=self._meter.read())
        return [_family(series, snapshot) for series in self.series]


def _of_serving(counts: Mapping[int, int], clusters: Sequence[Cluster]) -> Mapping[int, int]:
    """Return the counts of brokers that are not fenced: an ISR that shrinks meanwhile says nothing about such a one."""
    brokers = clusters[0].brokers if clusters else {}
    return {
        broker: count
        for broker, count in counts.items()
        if broker in brokers and brokers[broker].state is not BrokerState.fenced
    }


def _summed(before: Mapping[int, int], more: Mapping[int, int]) -> Mapping[int, int]:
    """Add counts up, and keep zeros: a counter that begins with one shows no increase."""
    return {broker: before.get(broker, 0) + more.get(broker, 0) for broker in before.keys() | more.keys()}


def _cluster_wide(clusters: Sequence[Cluster]) -> dict[str, Any]:
    """Add up what each shard counts by itself. Take what all shards share from the first."""
    if not clusters:
        return {}
    backlog = Counter[int]()
    for cluster in clusters:
        backlog.update(cluster.backlog)
    return {
        "backlog": clusters[0].shown_backlog(backlog),
        "clock_ms": max(cluster.clock_ms for cluster in clusters),
        "bus_clock_off_ms": clusters[0].clock_skew_ms,
        "shadow": clusters[0].shadow,
        "brokers": Counter(broker.state.name for broker in clusters[0].brokers.values()),
        "totals": sum((cluster.totals for cluster in clusters), Totals()),
    }


def _family(series: Series, snapshot: MetricSnapshot) -> Metric:
    value = series.value(snapshot)
    if isinstance(value, Histogram):
        return HistogramMetricFamily(series.name, series.help, buckets=_buckets(value), sum_value=value.sum_s)
    if isinstance(value, Recent):
        return _summary(series, value)
    return plain_family(series, value)


def _summary(series: Series, recent: Recent) -> Metric:
    """Render durations in milliseconds like Kafka's exporters: recent quantiles, and the count of all."""
    family = SummaryMetricFamily(series.name, series.help, count_value=recent.count, sum_value=recent.sum_s * 1000)
    for quantile, seconds in recent.quantiles(QUANTILES).items():
        family.add_sample(series.name, {"quantile": f"{quantile:g}"}, seconds * 1000)
    return family


def _buckets(histogram: Histogram) -> list[tuple[str, float]]:
    """Make the counts cumulative, because Prometheus' buckets are."""
    buckets: list[tuple[str, float]] = []
    below = 0
    for bound, count in zip((*map(str, SECONDS_BUCKETS), "+Inf"), histogram.counts, strict=True):
        below += count
        buckets.append((bound, below))
    return buckets
