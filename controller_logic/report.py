"""Take in what became of a decision on a broker: it is carried out, or a log directory is lost (KIP-112)."""

from controller_logic import deletion, fencing, progress, removal
from controller_logic.availability import replica_started, replicas_failed
from controller_logic.draft import Draft
from controller_logic.fencing import Refusal
from state.events import ReplicaReport
from state.partition import ReplicaState
from state.reason import Reason

# What a broker answers for a replica whose log directory is lost; other errors say that a decision
# came late or twice, and the replica is as well as before.
_LOST_LOG = "KAFKA_STORAGE_ERROR"


def replica_report(draft: Draft, event: ReplicaReport) -> None:
    """Take a replica offline that lost its log, or online that follows or leads again."""
    broker = fencing.in_its_epoch(draft, event.broker, event.broker_epoch)
    if broker is None:
        return
    namesake = fencing.of_another_topic(draft, event)
    if namesake is not None:
        draft.answer_if_asked(*namesake)
        return
    deleting = draft.topic(event.topic)
    if deleting is not None and deleting.is_deleting:
        deletion.replica_reported(draft, deleting, event)
        draft.answer_if_asked()
        return
    found = fencing.known_partition(draft, event)
    if isinstance(found, Refusal):
        draft.answer_if_asked(*found)
        return
    topic, partition = found
    if removal.is_removed(partition, event.broker):
        removal.replica_reported(draft, topic, partition, event)
        draft.answer_if_asked()
        return
    if event.broker not in partition.replicas:
        message = f"broker {event.broker} holds no replica of {event.topic}-{event.partition}"
        draft.reject("broker", message, Reason.REQUEST_REFUSED)
        draft.answer_if_asked("INVALID_REQUEST", message)
        return
    partition = progress.reported(draft, topic, partition, event)
    state = partition.replica_states[partition.replicas.index(event.broker)]
    if event.outcome == "offline" or (event.outcome == "error" and event.error == _LOST_LOG):
        if state != ReplicaState.OfflineReplica:
            replicas_failed(draft, topic, partition, frozenset({event.broker}))
    elif (
        event.outcome in ("leader", "follower")
        and state == ReplicaState.OfflineReplica
        and event.leader_epoch == partition.leader_epoch
        and broker.is_active
    ):
        replica_started(draft, topic, partition, event.broker)
    draft.answer_if_asked()
