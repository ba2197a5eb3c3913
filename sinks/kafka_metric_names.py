"""The metrics under the names that dashboards for Kafka's own controller use."""

from collections.abc import Callable

from sinks.metric_names import Labelled, Series, expands, expired, rejected, shrinks
from sinks.metric_snapshot import MetricSnapshot
from sinks.web.health import COMMIT_AGE_MS_MAX
from sinks.web.partitions import Row
from state.broker import BrokerState

_CONTROLLER = "kafka_controller_kafkacontroller_"
_REPLICAS = "kafka_server_replicamanager_"
_PARTITION = "kafka_cluster_partition_"
_PLACE = ("topic", "partition")


def _in_state(state: BrokerState) -> Callable[[MetricSnapshot], float]:
    return lambda s: s.brokers.get(state.name, 0)


def _lag_ms(s: MetricSnapshot) -> float:
    return max(0, s.last_engine_ms + s.commit_age_ms - s.clock_ms) if s.clock_ms else 0


def _decides(s: MetricSnapshot) -> float:
    return float(s.active and s.commit_age_ms <= COMMIT_AGE_MS_MAX)


def _is_under_min_isr(row: Row) -> bool:
    return len(row.isr) < row.min_isr


def _of_rows(read: Callable[[Row], float]) -> Callable[[MetricSnapshot], Labelled]:
    return lambda s: {(row.topic, str(row.partition)): float(read(row)) for row in s.at_risk}


KAFKA = (
    Series(
        f"{_CONTROLLER}activecontrollercount",
        "gauge",
        "1 while this job holds the controller epoch, and has committed or taken over within 10 s.",
        _decides,
    ),
    Series(f"{_CONTROLLER}newactivecontrollerscount", "gauge", "Take-overs by this job.", lambda s: s.takeovers),
    Series(f"{_CONTROLLER}globaltopiccount", "gauge", "Topics.", lambda s: s.totals.topics),
    Series(f"{_CONTROLLER}globalpartitioncount", "gauge", "Partitions.", lambda s: s.totals.partitions),
    Series(f"{_CONTROLLER}offlinepartitionscount", "gauge", "Partitions without a leader.", lambda s: s.totals.offline),
    Series(
        f"{_CONTROLLER}preferredreplicaimbalancecount",
        "gauge",
        "Partitions that are not led by their preferred (first assigned) replica.",
        lambda s: s.totals.not_preferred,
    ),
    Series(f"{_CONTROLLER}activebrokercount", "gauge", "Active brokers.", _in_state(BrokerState.active)),
    Series(f"{_CONTROLLER}fencedbrokercount", "gauge", "Fenced brokers.", _in_state(BrokerState.fenced)),
    Series(f"{_CONTROLLER}timedoutbrokerheartbeatcount", "gauge", "Brokers fenced because they fell silent.", expired),
    Series(f"{_CONTROLLER}metadataerrorcount", "gauge", "Malformed, refused and failed events.", rejected),
    Series(
        f"{_CONTROLLER}lastappliedrecordoffset",
        "gauge",
        "The seq of the last decided event.",
        lambda s: s.decided_seq,
    ),
    Series(
        f"{_CONTROLLER}lastappliedrecordtimestamp",
        "gauge",
        "The engine's clock, in milliseconds since the Unix epoch.",
        lambda s: s.clock_ms,
    ),
    Series(
        f"{_CONTROLLER}lastappliedrecordlagms",
        "gauge",
        "How long ago, by the engine's clock, the last decided tick was.",
        _lag_ms,
    ),
    Series(
        "kafka_controller_controllerstats_uncleanleaderelections",
        "counter",
        "Elections of a replica that was not in sync.",
        lambda s: s.unclean,
    ),
    Series(
        "kafka_controller_controllereventmanager_eventqueuetimems",
        "summary",
        "Milliseconds from publishing an event to committing a decision on it. Quantiles of the last 256 such batches.",
        lambda s: s.recent_delays,
    ),
    Series(
        "kafka_controller_controllereventmanager_eventqueueprocessingtimems",
        "summary",
        "Milliseconds of the batch that an event was decided in. Quantiles of the last 256 batches.",
        lambda s: s.recent_batches,
    ),
    Series(f"{_REPLICAS}partitioncount", "gauge", "Replicas, summed over the brokers.", lambda s: s.totals.replicas),
    Series(
        f"{_REPLICAS}leadercount",
        "gauge",
        "Led partitions, summed over the brokers.",
        lambda s: s.totals.partitions - s.totals.offline,
    ),
    Series(
        f"{_REPLICAS}underreplicatedpartitions",
        "gauge",
        "Partitions with fewer in-sync replicas than assigned.",
        lambda s: s.totals.under_replicated,
    ),
    Series(
        f"{_REPLICAS}underminisrpartitioncount",
        "gauge",
        "Partitions with fewer in-sync replicas than min.insync.replicas.",
        lambda s: s.totals.under_min_isr,
    ),
    Series(
        f"{_REPLICAS}atminisrpartitioncount",
        "gauge",
        "Partitions with exactly min.insync.replicas in sync.",
        lambda s: s.totals.at_min_isr,
    ),
    Series(f"{_REPLICAS}isrshrinks", "counter", "ISR changes that removed replicas.", shrinks),
    Series(f"{_REPLICAS}isrexpands", "counter", "ISR changes that added replicas.", expands),
    Series(
        f"{_REPLICAS}failedisrupdates", "counter", "ISR changes that were refused.", lambda s: s.failed_isr_updates
    ),
    *(
        Series(f"{_PARTITION}{name}", "gauge", f"{what}, for each of the 500 worst partitions at risk.", read, _PLACE)
        for name, what, read in (
            ("underminisr", "1 if fewer replicas than min.insync.replicas are in sync", _of_rows(_is_under_min_isr)),
            ("atminisr", "1 if exactly min.insync.replicas are in sync", _of_rows(lambda r: len(r.isr) == r.min_isr)),
            ("insyncreplicascount", "In-sync replicas", _of_rows(lambda r: len(r.isr))),
            ("replicascount", "Replicas", _of_rows(lambda r: len(r.replicas))),
        )
    ),
)  # fmt: skip
