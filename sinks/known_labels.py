"""The label values that are served from the start at 0, because otherwise ``increase()`` misses the first step."""

from sinks.metric_snapshot import KindReason
from state.reason import Reason as R

_BY_KIND: dict[str, tuple[R, ...]] = {
    "leader_and_isr": (
        *(R.TOPIC_CREATED, R.TOPIC_ADOPTED, R.PARTITIONS_CREATED, R.LEADER_FENCED, R.LEADER_RETURNED, R.REPLICA_FENCED),
        *(
            R.ELIGIBLE_ELECTION,
            R.UNCLEAN_ELECTION,
            R.LOG_ELECTION,
            R.LOG_COMPLETE,
            R.PREFERRED_ELECTION,
            R.LEADER_BALANCE,
            R.LEADER_RECOVERED,
            R.CONTROLLED_SHUTDOWN,
        ),
        *(R.REPLICA_ONLINE, R.ISR_SHRUNK, R.ISR_EXPANDED, R.ISR_ALTERED, R.REASSIGNMENT, R.TOPIC_DELETED),
        *(
            R.LOG_DIR_ASSIGNED,
            R.LOG_LEFT_BEHIND,
            R.BROKER_RESTARTED,
            R.BROKER_UNREGISTERED,
            R.OBSERVATION_BEGAN,
            R.RECORDS_MISSED,
            R.OBSERVED,
            R.CONFIG_CHANGED,
        ),
    ),
    "stop_replica": (R.CONTROLLED_SHUTDOWN, R.REASSIGNMENT, R.TOPIC_DELETED),
    "topic": (
        *(R.TOPIC_CREATED, R.TOPIC_ADOPTED, R.TOPIC_DELETED),
        *(R.OBSERVATION_BEGAN, R.RECORDS_MISSED, R.OBSERVED),
    ),
    "broker": (
        *(R.BROKER_REGISTERED, R.BROKER_RESTARTED, R.BROKER_UNFENCED, R.BROKER_SESSION_EXPIRED),
        *(R.BROKER_CONNECTION_LOST, R.BROKER_ASKED_FENCE, R.BROKER_UNREGISTERED, R.CONTROLLED_SHUTDOWN),
        *(R.LOG_DIR_FAILED, R.LOG_DIRS_CORDONED, R.BROKER_FENCED, R.OBSERVATION_BEGAN, R.RECORDS_MISSED, R.OBSERVED),
    ),
    "high_watermark": (R.REPLICATED,),
    "answer": (R.REQUEST_DONE, R.REQUEST_REFUSED),
    "config": (R.CONFIG_CHANGED,),
    "rejected": (
        *(R.MALFORMED, R.REQUEST_REFUSED, R.UNKNOWN_BROKER, R.UNKNOWN_CLAIM, R.TIME_AHEAD),
        *(R.RULES_FAILED, R.INVARIANT_BROKEN, R.SHADOW_REFUSED),
    ),
    "imbalance": (R.LEADER_BALANCE,),
    "quorum": (
        *(R.GATEWAY_STARTED, R.GATEWAY_SILENT, R.GATEWAY_UNHEARD, R.GATEWAY_STOPPED, R.CONTROLLER_STARTED),
        R.CONTROLLER_CHANGED,
    ),
    "producer_ids": (R.PRODUCER_IDS_ALLOCATED,),
    "no_op": (R.MAX_IDLE_INTERVAL,),
    "acls": (R.ACLS_CHANGED,),
    "entity": (R.ENTITY_CHANGED, R.TOKEN_EXPIRED),
    "level": (R.LEVEL_RAISED,),
    "divergence": (R.RULES_DIFFER,),
    "violation": (R.INVARIANT_VIOLATED,),
}
KIND_REASONS: tuple[KindReason, ...] = tuple(
    (kind, reason.value) for kind, reasons in _BY_KIND.items() for reason in reasons
)
# The phases in Spark's progress (durationMs).
PHASES = (
    *("addBatch", "commitBatch", "commitOffsets", "getBatch", "latestOffset"),
    *("queryPlanning", "walCommit"),
)
# What follows a commit (``streaming/batch_writer.py``).
PARTS_AFTER_COMMIT = ("clock", "imbalance", "log", "metrics", "page", "state")
