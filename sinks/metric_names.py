"""Our own metrics by name: what each means, and how to read its value from a snapshot."""

from collections.abc import Callable

from conf import metric_series
from conf.metric_series import Labelled as Labelled
from sinks.known_labels import KIND_REASONS, PARTS_AFTER_COMMIT, PHASES
from sinks.metric_snapshot import Histogram, MetricSnapshot, Recent
from sinks.resources import PROCESSES
from state.broker import REGISTERED_STATES
from state.reason import Reason

Value = float | Histogram | Recent | Labelled

QUANTILES = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)


Series = metric_series.Series[MetricSnapshot, Value]


def _phases(s: MetricSnapshot) -> Labelled:
    return {(phase,): spent_s for phase, spent_s in (dict.fromkeys(PHASES, 0.0) | dict(s.phase_seconds)).items()}


def _brokers(s: MetricSnapshot) -> Labelled:
    return {(state.name,): s.brokers.get(state.name, 0) for state in REGISTERED_STATES}


def _decided_for(kind: str, reason: Reason | None = None) -> Callable[[MetricSnapshot], float]:
    return lambda s: s.decided_for(kind, reason)


OWN = (
    Series(
        "isrflow_info",
        "gauge",
        "Always 1. Its labels show the version and the controller's name.",
        lambda s: {(s.version, s.controller_id): 1},
        ("version", "controller_id"),
    ),
    Series(
        "isrflow_controller_active",
        "gauge",
        "1 while this job holds the controller epoch.",
        lambda s: float(s.active),
    ),
    Series(
        "isrflow_controller_standby",
        "gauge",
        "1 while this job waits to take over from the one that decides.",
        lambda s: float(s.standby),
    ),
    Series(
        "isrflow_controller_standby_following",
        "gauge",
        "1 while a standby takes in the state that the active engine writes. Always 0 if both use one checkpoint.",
        lambda s: float(s.following),
    ),
    Series("isrflow_controller_epoch", "gauge", "The controller epoch of this job.", lambda s: s.controller_epoch),
    Series("isrflow_batches", "counter", "Completed micro-batches.", lambda s: s.batches),
    Series(
        "isrflow_batch_duration_seconds",
        "histogram",
        "Duration of micro-batches. On a bus file without the phase latestOffset, in which it is watched for news.",
        lambda s: s.batch_seconds,
    ),
    Series(
        "isrflow_batch_phase_seconds",
        "counter",
        "Time spent in each phase of the micro-batches, by Spark's names (durationMs of its progress).",
        _phases,
        ("phase",),
    ),
    Series(
        "isrflow_last_batch_timestamp_seconds",
        "gauge",
        "Time of the last commit of decisions, in seconds since the Unix epoch. 0 before the first.",
        lambda s: s.last_batch_ms / 1000,
    ),
    Series(
        "isrflow_failures_after_commit",
        "counter",
        "Failures of what follows a commit, by part, which is a defect. The decisions were written.",
        lambda s: dict.fromkeys(((part,) for part in PARTS_AFTER_COMMIT), 0.0)
        | {(part,): failures for part, failures in s.failed_after_commit.items()},
        ("part",),
    ),
    Series("isrflow_events", "counter", "Events read.", lambda s: s.events),
    Series("isrflow_rejected_events", "counter", "Malformed, refused and failed events.", _decided_for("rejected")),
    Series(
        "isrflow_malformed_events",
        "counter",
        "Events that could not be understood.",
        _decided_for("rejected", Reason.MALFORMED),
    ),
    Series(
        "isrflow_rule_failures",
        "counter",
        "Events that a rule failed on, which is a defect.",
        _decided_for("rejected", Reason.RULES_FAILED),
    ),
    Series(
        "isrflow_broken_invariants",
        "counter",
        "Changes that were withheld because they would break an invariant, which is a defect.",
        _decided_for("rejected", Reason.INVARIANT_BROKEN),
    ),
    Series(
        "isrflow_bus_lag_events",
        "gauge",
        "Events on the bus that can be decided and are not, unless all of them are heartbeats and log ends that wait.",
        lambda s: s.lag_events,
    ),
    Series(
        "isrflow_bus_blocked_records",
        "gauge",
        "Records of events on Kafka that cannot be decided, because a transaction is open that begins before them.",
        lambda s: s.blocked_records,
    ),
    Series(
        "isrflow_bus_blocked_seconds",
        "gauge",
        "For how long the same open transaction has kept events from being decided; 0 if none does.",
        lambda s: s.blocked_ms / 1000,
    ),
    Series("isrflow_decided_seq", "gauge", "The seq of the last decided event.", lambda s: s.decided_seq),
    Series(
        "isrflow_decisions",
        "counter",
        "Decisions written, by kind and reason.",
        lambda s: dict.fromkeys(KIND_REASONS, 0) | dict(s.decisions),
        ("kind", "reason"),
    ),
    Series(
        "isrflow_decision_delay_seconds",
        "histogram",
        "Time by the engine's clock from the event that caused a decision to the decision's commit.",
        lambda s: s.delay_seconds,
    ),
    Series(
        "isrflow_clock_skew_seconds",
        "gauge",
        "How far the engine's clock was ahead of its machine's at the last commit. Negative if behind.",
        lambda s: (s.clock_off_ms or 0) / 1000,
    ),
    Series(
        "isrflow_bus_clock_skew_seconds",
        "gauge",
        "How far the engine's clock was ahead of the bus's when the newest decided tick entered the bus.",
        lambda s: (s.bus_clock_off_ms or 0) / 1000,
    ),
    Series(
        "isrflow_shadow_age_seconds",
        "gauge",
        "Age of what a shadow has observed; 0 without one.",
        lambda s: s.shadow_age_ms / 1000,
    ),
    Series("isrflow_wall_clock_steps", "counter", "How often the machine's clock was set.", lambda s: s.clock_steps),
    Series("isrflow_brokers", "gauge", "Registered brokers, by state.", _brokers, ("state",)),
    Series(
        "isrflow_broker_backlog",
        "gauge",
        "Replicas on a broker whose newest decision the broker has not reported as carried out.",
        lambda s: {(str(broker),): count for broker, count in s.backlog.items()},
        ("broker",),
    ),
    Series(
        "isrflow_broker_sessions_expired",
        "counter",
        "Brokers fenced because they fell silent.",
        _decided_for("broker", Reason.BROKER_SESSION_EXPIRED),
    ),
    Series(
        "isrflow_broker_fencings",
        "counter",
        "How often each broker was fenced, for any reason.",
        lambda s: {(str(broker),): s.fencings.get(broker, 0) for broker in s.backlog.keys() | s.fencings.keys()},
        ("broker",),
    ),
    Series(
        "isrflow_broker_restarts",
        "counter",
        "How often each broker registered in a new start.",
        lambda s: {(str(broker),): s.restarts.get(broker, 0) for broker in s.backlog.keys() | s.restarts.keys()},
        ("broker",),
    ),
    Series(
        "isrflow_broker_isr_shrinks",
        "counter",
        "How often a leader made an ISR smaller and this broker, which served, was a replica outside it.",
        lambda s: {(str(broker),): s.isr_shrinks.get(broker, 0) for broker in s.backlog.keys() | s.isr_shrinks.keys()},
        ("broker",),
    ),
    Series("isrflow_topics", "gauge", "Topics.", lambda s: s.totals.topics),
    Series("isrflow_partitions", "gauge", "Partitions.", lambda s: s.totals.partitions),
    Series("isrflow_replicas", "gauge", "Replicas of all partitions.", lambda s: s.totals.replicas),
    Series("isrflow_offline_partitions", "gauge", "Partitions without a leader.", lambda s: s.totals.offline),
    Series(
        "isrflow_under_replicated_partitions",
        "gauge",
        "Partitions with fewer in-sync replicas than assigned.",
        lambda s: s.totals.under_replicated,
    ),
    Series(
        "isrflow_under_min_isr_partitions",
        "gauge",
        "Partitions with fewer in-sync replicas than min.insync.replicas.",
        lambda s: s.totals.under_min_isr,
    ),
    Series(
        "isrflow_at_min_isr_partitions",
        "gauge",
        "Partitions with exactly min.insync.replicas in sync: one failure from refusing writes with acks=all.",
        lambda s: s.totals.at_min_isr,
    ),
    Series(
        "isrflow_one_failure_from_offline_partitions",
        "gauge",
        "Partitions of which only the leader may lead. No series while that is not counted yet.",
        lambda s: {} if s.one_from_offline is None else {(): s.one_from_offline},
    ),
    Series(
        "isrflow_not_preferred_partitions",
        "gauge",
        "Partitions that are not led by their preferred (first assigned) replica.",
        lambda s: s.totals.not_preferred,
    ),
    Series(
        "isrflow_reassigning_partitions", "gauge", "Partitions under reassignment.", lambda s: s.totals.reassigning
    ),
    Series(
        "isrflow_eligible_elections",
        "counter",
        "Elections of an eligible leader replica, outside the ISR.",
        _decided_for("leader_and_isr", Reason.ELIGIBLE_ELECTION),
    ),
    Series("isrflow_unclean_elections", "counter", "Elections of a replica that was not in sync.", lambda s: s.unclean),
    Series(
        "isrflow_isr_shrinks",
        "counter",
        "ISR changes by which a leader removed replicas.",
        _decided_for("leader_and_isr", Reason.ISR_SHRUNK),
    ),
    Series(
        "isrflow_isr_expands",
        "counter",
        "ISR changes by which a leader added replicas.",
        _decided_for("leader_and_isr", Reason.ISR_EXPANDED),
    ),
    Series(
        "isrflow_failed_isr_updates", "counter", "ISR changes that were refused.", lambda s: s.failed_isr_updates
    ),
    Series(
        "isrflow_partition_at_risk",
        "gauge",
        "1 for each of the 500 worst partitions at risk. A partition without a problem has no series.",
        lambda s: {(row.topic, str(row.partition), row.problems[0]): 1 for row in s.at_risk},
        ("topic", "partition", "problem"),
    ),
    Series(
        "isrflow_bus_bytes",
        "gauge",
        "Size of the files of the bus. Not served for a bus on Kafka.",
        lambda s: {} if s.resources.bus_bytes is None else {(): s.resources.bus_bytes},
    ),
    Series(
        "isrflow_process_memory_bytes",
        "gauge",
        "Resident memory of the engine's own process, of Spark's JVM, and of all its other processes.",
        lambda s: {(process,): s.resources.memory_bytes.get(process, 0) for process in PROCESSES},
        ("process",),
    ),
)  # fmt: skip
