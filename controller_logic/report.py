"""Apply a broker's report on a decision: it carried the decision out, or it lost a log directory (KIP-112)."""

from controller_logic import deletion, fencing, removal, request_epochs
from controller_logic.availability import replica_started, replicas_failed
from controller_logic.batch import Batch
from controller_logic.fencing import Refusal
from state.events import ReplicaReport
from state.partition import ReplicaState

# Brokers report this error for a replica whose log directory is lost. Other errors mean that a decision came late or
# twice, and that the replica is unchanged.
_LOST_LOG = "KAFKA_STORAGE_ERROR"


def replica_report(batch: Batch, event: ReplicaReport) -> None:
    """Take a replica offline if it lost its log, and online if it leads or follows again."""
    broker = fencing.in_its_epoch(batch, event.broker, event.broker_epoch)
    if broker is None:
        return
    refusal = fencing.of_another_topic(batch, event)
    if refusal is not None:
        batch.recorder.answer_if_requested(*refusal)
        return
    deleting = batch.state.topic(event.topic)
    if deleting is not None and deleting.is_deleting:
        deletion.replica_reported(batch, deleting, event)
        batch.recorder.answer_if_requested()
        return
    found = fencing.known_partition(batch, event)
    if isinstance(found, Refusal):
        batch.recorder.answer_if_requested(*found)
        return
    topic, partition = found
    if removal.is_removed(partition, event.broker):
        removal.replica_reported(batch, topic, partition, event)
        batch.recorder.answer_if_requested()
        return
    if not fencing.holds_replica(batch, partition, event):
        return
    partition = request_epochs.reported(batch, topic, partition, event)
    state = partition.replica_states[partition.replicas.index(event.broker)]
    if event.outcome == "offline" or (event.outcome == "error" and event.error == _LOST_LOG):
        if state != ReplicaState.OfflineReplica:
            replicas_failed(batch, topic, partition, frozenset({event.broker}))
    elif (
        event.outcome in ("leader", "follower")
        and state == ReplicaState.OfflineReplica
        and event.leader_epoch == partition.leader_epoch
        and broker.is_active
    ):
        replica_started(batch, topic, partition, event.broker)
    batch.recorder.answer_if_requested()
