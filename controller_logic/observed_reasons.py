"""The reason of a decision that repeats what an observed controller decided."""

from state.broker import Broker
from state.ids import NO_LEADER
from state.observed_events import Cause
from state.partition import LeaderRecoveryState, Partition
from state.reason import Reason

_OF_BROKERS = {
    Cause.seed: Reason.OBSERVATION_BEGAN,
    Cause.gap: Reason.RECORDS_MISSED,
    Cause.session_expired: Reason.BROKER_SESSION_EXPIRED,
    Cause.stopped_session_ended: Reason.BROKER_SESSION_EXPIRED,
    Cause.session_or_shutdown: Reason.BROKER_FENCED,
    Cause.controlled_shutdown: Reason.CONTROLLED_SHUTDOWN,
    Cause.shutdown_complete: Reason.BROKER_ASKED_FENCE,
    Cause.broker_registered: Reason.BROKER_REGISTERED,
    Cause.unclean_restart: Reason.BROKER_RESTARTED,
    Cause.broker_ready: Reason.BROKER_UNFENCED,
    Cause.broker_unregistered: Reason.BROKER_UNREGISTERED,
    Cause.directory_failed: Reason.LOG_DIR_FAILED,
    Cause.directories_cordoned: Reason.LOG_DIRS_CORDONED,
}
_OF_PARTITIONS = {
    Cause.seed: Reason.OBSERVATION_BEGAN,
    Cause.gap: Reason.RECORDS_MISSED,
    Cause.controlled_shutdown: Reason.CONTROLLED_SHUTDOWN,
    Cause.broker_ready: Reason.LEADER_RETURNED,
    Cause.replica_placed: Reason.LOG_DIR_ASSIGNED,
    Cause.isr_shrunk: Reason.ISR_SHRUNK,
    Cause.isr_expanded: Reason.ISR_EXPANDED,
    Cause.preferred_election: Reason.PREFERRED_ELECTION,
    Cause.leader_recovered: Reason.LEADER_RECOVERED,
    Cause.reassignment_began: Reason.REASSIGNMENT,
    Cause.reassignment_ended: Reason.REASSIGNMENT,
    Cause.reassignment_cancelled: Reason.REASSIGNMENT,
    Cause.reassignment_done_at_once: Reason.REASSIGNMENT,
    Cause.topic_created: Reason.TOPIC_CREATED,
    Cause.partitions_added: Reason.PARTITIONS_CREATED,
    Cause.settings_changed: Reason.CONFIG_CHANGED,
    Cause.elr_cleared: Reason.CONFIG_CHANGED,
}
# A broker, or one of its directories, is gone.
FENCES = frozenset(
    {
        Cause.session_expired,
        Cause.session_or_shutdown,
        Cause.shutdown_complete,
        Cause.stopped_session_ended,
        Cause.broker_unregistered,
        Cause.unclean_restart,
        Cause.directory_failed,
    }
)


def reason_of_broker(cause: Cause, former: Broker | None, broker: Broker) -> Reason:
    """Return why a broker stands as it does."""
    if cause is Cause.broker_registered and former is not None and former.incarnation != broker.incarnation:
        return Reason.BROKER_RESTARTED
    return _OF_BROKERS.get(cause, Reason.OBSERVED)


def reason_of_topic(cause: Cause) -> Reason:
    """Return why there is a topic, or none any more."""
    if cause is Cause.topic_deleted:
        return Reason.TOPIC_DELETED
    return _OF_PARTITIONS.get(cause, Reason.OBSERVED)


def reason_of_partition(cause: Cause, before: Partition | None, after: Partition) -> Reason:
    """Return why a partition stands as it does."""
    if is_unclean(before, after):
        return Reason.UNCLEAN_ELECTION
    if cause in FENCES:
        is_led_as_before = before is not None and before.leader == after.leader
        return Reason.REPLICA_FENCED if is_led_as_before else Reason.LEADER_FENCED
    return _OF_PARTITIONS.get(cause, Reason.OBSERVED)


def is_unclean(before: Partition | None, after: Partition) -> bool:
    """Return whether a replica became leader that may lack records. Kafka's controller says so in the record."""
    if before is None or after.leader in (before.leader, NO_LEADER):
        return False
    return after.leader_recovery_state is LeaderRecoveryState.RECOVERING
