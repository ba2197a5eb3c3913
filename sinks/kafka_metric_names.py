"""The metrics under the names that dashboards for Kafka's own controller use."""

from collections.abc import Callable
from typing import Literal

import msgspec

from sinks.metric_names import OWN, Labelled, Series
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


def _like(own: str, name: str, kind: Literal["gauge", "counter"] = "gauge") -> Series:
    """Return one of our own metrics under Kafka's name for it."""
    [found] = [series for series in OWN if series.name == f"isrflow_{own}"]
    return msgspec.structs.replace(found, name=name, kind=kind)


def _like_each(own: str, name: str) -> tuple[Series, Series]:
    """Return one of our own counters under both names that exporters give to Kafka's: with ``PerSec`` and without."""
    return _like(own, name, "counter"), _like(own, f"{name}persec", "counter")


KAFKA = (
    Series(
        f"{_CONTROLLER}activecontrollercount",
        "gauge",
        "1 while this job holds the controller epoch, and has committed or taken over within 10 s.",
        _decides,
    ),
    Series(f"{_CONTROLLER}newactivecontrollerscount", "gauge", "Take-overs by this job.", lambda s: s.takeovers),
    _like("topics", f"{_CONTROLLER}globaltopiccount"),
    _like("partitions", f"{_CONTROLLER}globalpartitioncount"),
    _like("offline_partitions", f"{_CONTROLLER}offlinepartitionscount"),
    _like("not_preferred_partitions", f"{_CONTROLLER}preferredreplicaimbalancecount"),
    Series(f"{_CONTROLLER}activebrokercount", "gauge", "Active brokers.", _in_state(BrokerState.active)),
    Series(f"{_CONTROLLER}fencedbrokercount", "gauge", "Fenced brokers.", _in_state(BrokerState.fenced)),
    _like("broker_sessions_expired", f"{_CONTROLLER}timedoutbrokerheartbeatcount"),
    _like("rejected_events", f"{_CONTROLLER}metadataerrorcount"),
    _like("decided_seq", f"{_CONTROLLER}lastappliedrecordoffset"),
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
    *_like_each("eligible_elections", "kafka_controller_controllerstats_electionfromeligibleleaderreplicas"),
    *_like_each("unclean_elections", "kafka_controller_controllerstats_uncleanleaderelections"),
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
    _like("replicas", f"{_REPLICAS}partitioncount"),
    Series(
        f"{_REPLICAS}leadercount",
        "gauge",
        "Led partitions, summed over the brokers.",
        lambda s: s.totals.partitions - s.totals.offline,
    ),
    _like("under_replicated_partitions", f"{_REPLICAS}underreplicatedpartitions"),
    _like("under_min_isr_partitions", f"{_REPLICAS}underminisrpartitioncount"),
    _like("at_min_isr_partitions", f"{_REPLICAS}atminisrpartitioncount"),
    *_like_each("isr_shrinks", f"{_REPLICAS}isrshrinks"),
    *_like_each("isr_expands", f"{_REPLICAS}isrexpands"),
    *_like_each("failed_isr_updates", f"{_REPLICAS}failedisrupdates"),
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
