"""Defects of Kafka's controller that an audit comes upon, by their number and the versions that have them."""

from msgspec import UNSET, UnsetType

from controller_logic.observed_invariants import LEADER_NOT_FENCED
from state.observed_events import Cause
from state.partition import LeaderRecoveryState, Partition

# The last known leader is elected although it is fenced.
FENCED_LAST_LEADER = "KAFKA-19522 (Kafka 4.0 with eligible leader replicas; 4.1 has the fix)"
# The leader epoch rises with each smaller ISR.
EPOCH_AT_SHRINK = "KAFKA-15021 (Kafka before 3.6, or a metadata.version before 3.6-IV0)"
_SHRINKS = frozenset(
    {
        Cause.isr_shrunk,
        Cause.session_expired,
        Cause.session_or_shutdown,
        Cause.controlled_shutdown,
        Cause.shutdown_complete,
        Cause.stopped_session_ended,
        Cause.broker_unregistered,
    }
)
_Value = int | tuple[int, ...]


def defect_of_divergence(cause: Cause, field: str, observed: _Value, predicted: _Value) -> str | UnsetType:
    """Return the known defect that a difference looks like, if any."""
    is_one_more = isinstance(observed, int) and isinstance(predicted, int) and observed == predicted + 1
    return EPOCH_AT_SHRINK if field == "leader_epoch" and is_one_more and cause in _SHRINKS else UNSET


def defect_of_violation(invariant: str, after: Partition) -> str | UnsetType:
    """Return the known defect that a broken invariant looks like, if any."""
    is_recovering = after.leader_recovery_state is LeaderRecoveryState.RECOVERING
    return FENCED_LAST_LEADER if invariant == LEADER_NOT_FENCED and is_recovering else UNSET
