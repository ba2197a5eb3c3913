"""Delete topics: every replica removes its log and reports it, then the topic is gone (``TopicDeletionManager``).

The problem: brokers come and go while logs are removed, and no log may be left behind. So the topic stays in the state
until every replica has reported:

    replica   OfflineReplica ─► ReplicaDeletionStarted ─► ReplicaDeletionSuccessful
                     │            ▲   │ error, log directory lost, broker away
                     │      retry │   ▼
                     └────────► ReplicaDeletionIneligible     not online when the deletion began

    topic     created ─► deleting ◄─► ineligible (while any replica is) ─► deleted (all successful)

Online is as in ``ControllerContext.isReplicaOnline``: the broker is active and the log directory is not lost.
A deletion is retried when a broker with a replica of the topic starts, when a controller takes over, and when the
deletion is asked for again. A retry leaves out the replicas that are not online.

* While a partition of the topic is reassigned, the deletion waits. The topic lives on, and is shown as ``ineligible``.
  With brokers of Kafka 4 only, it does not wait.
* A replica that a reassignment had removed is told once more, and forgotten.
* A broker of Kafka 4 (behind a gateway) is not waited for while it is away. When it starts, it removes the logs of
  topics whose ids are not in the metadata log, so its replicas are successful at once.
* An unregistered broker is not waited for. If it comes back, it has logs of a topic that is gone, and topics have ids.
* With brokers of Kafka 4 only, none is waited for: the topic is gone in the event that deletes it, and its name is free
  (``ReplicationControlManager.deleteTopic``). Brokers read of the deletion before they read of another topic.
"""

from collections.abc import Callable, Collection, Set

from controller_logic.batch import Batch
from controller_logic.commit import commit_partition, tell_stop_replica
from controller_logic.commit_topic import (
    commit_deletion_begins,
    commit_deletion_not_due,
    commit_deletion_state,
    commit_deletion_waits,
)
from controller_logic.replica_machine import online_replicas, to_be_deleted, transition
from controller_logic.working_topic import WorkingTopic
from state.change import PartitionChange
from state.events import DeleteTopic
from state.ids import EPOCH_DURING_DELETE, NO_LEADER
from state.partition import Partition, PartitionState, ReplicaState, TopicState
from state.reason import Reason
from state.topic_events import OneReport

_STARTED = ReplicaState.ReplicaDeletionStarted
_SUCCESSFUL = ReplicaState.ReplicaDeletionSuccessful
_INELIGIBLE = ReplicaState.ReplicaDeletionIneligible


def are_all_kraft(batch: Batch) -> bool:
    """Return whether all registered brokers, and at least one, are of Kafka 4.

    Then a topic is gone in the event that deletes it, and neither a deletion nor new partitions wait until no partition
    of the topic moves.
    """
    brokers = batch.state.brokers.values()
    return bool(brokers) and all(broker.is_kraft for broker in brokers)


def delete_topic(batch: Batch, event: DeleteTopic) -> None:
    """Begin to delete a topic. Its partitions have no leader from now on.

    As in Kafka, a request for a topic that is already being deleted is answered as done. What failed is retried.
    """
    topic = batch.state.topic(event.topic)
    if event.topic_id is not None and (topic is None or topic.topic_id != event.topic_id):
        batch.recorder.answer("UNKNOWN_TOPIC_ID", f"there is no topic {event.topic} of that id", topic=event.topic)
        return
    if topic is None:
        batch.recorder.answer("UNKNOWN_TOPIC_OR_PARTITION", f"there is no topic {event.topic}", topic=event.topic)
        return
    if not batch.state.policy.delete_topic_enable:
        batch.recorder.answer("TOPIC_DELETION_DISABLED", "delete.topic.enable is false", topic=event.topic)
        return
    if topic.is_deleting:
        retry(batch, topic)
    elif topic.is_reassigning and not are_all_kraft(batch):
        if not topic.deletion_waits:
            commit_deletion_waits(batch, topic)
    else:
        begin(batch, topic)
    batch.recorder.answer(topic=event.topic, topic_id=topic.topic_id)


def begin_waiting(batch: Batch) -> None:
    """Begin the deletions that waited for reassignments that are over now."""
    for name in sorted(batch.state.deletions_due):
        topic = batch.state.topic(name)
        if topic is None or topic.is_reassigning:
            commit_deletion_not_due(batch, name)
        else:
            begin(batch, topic)


def begin(batch: Batch, topic: WorkingTopic) -> None:
    """Begin to delete a topic whose deletion waits for nothing, and end its reassignments."""
    commit_deletion_begins(batch, topic)
    for partition in topic.partitions:
        _begin_partition(batch, topic, partition)
    if are_all_kraft(batch):
        _pass_over_all(batch, topic)
    else:
        _pass_over_away(batch, topic)
    commit_deletion_state(batch, topic, _state_of(topic))


def _begin_partition(batch: Batch, topic: WorkingTopic, partition: Partition) -> None:
    removed = tuple([entry.broker for entry in partition.removed])
    assigned = online_replicas(partition.replicas, partition.replica_states, batch.state.active)
    # A broker of Kafka 4 removes what is left in a lost directory when it can read it again, without being told.
    others = batch.state.active - batch.state.reporting
    assigned = tuple([replica for replica in partition.replicas if replica in assigned or replica in others])
    online = {*assigned, *batch.state.active.intersection(removed)}
    pairs = zip(partition.replicas, partition.replica_states, strict=True)
    states = tuple([to_be_deleted(state, is_served=replica in online) for replica, state in pairs])
    change = PartitionChange(
        state=PartitionState.NonExistentPartition,
        leader=NO_LEADER,
        adding_replicas=(),
        removing_replicas=(),
        replica_states=states,
        removed=(),
        # On an active broker only a lost log directory takes a replica offline.
        lost_logs=tuple([r for r in partition.replicas if r in batch.state.active and r not in online]),
    )
    after = commit_partition(batch, topic, partition, change, Reason.TOPIC_DELETED, to=())
    _tell(batch, topic, after, tuple([replica for replica in (*partition.replicas, *removed) if replica in online]))


def _tell(batch: Batch, topic: WorkingTopic, partition: Partition, brokers: tuple[int, ...]) -> None:
    # A broker that reads the metadata log learns of the deletion there, so it gets no order.
    if brokers and not are_all_kraft(batch):
        epoch = EPOCH_DURING_DELETE
        tell_stop_replica(batch, topic, partition, Reason.TOPIC_DELETED, leader_epoch=epoch, delete=True, to=brokers)


def _pass_over_all(batch: Batch, topic: WorkingTopic) -> None:
    """Wait for no broker. Each broker removes the logs of topics that are gone from the metadata log."""
    for partition in topic.partitions:
        _pass_over(batch, topic, partition, partition.replicas)


def _pass_over(batch: Batch, topic: WorkingTopic, partition: Partition, brokers: Collection[int]) -> None:
    begun = _transition(batch, topic, partition, brokers, lambda state: to_be_deleted(state, is_served=True))
    _transition(batch, topic, begun, brokers, lambda state: transition(state, _SUCCESSFUL))


def _pass_over_away(batch: Batch, topic: WorkingTopic) -> None:
    """Stop waiting for brokers that are unregistered, or away and remove stray logs by themselves."""
    if not topic.has_replica_in(_INELIGIBLE):
        return
    for partition in topic.partitions:
        pairs = zip(partition.replicas, partition.replica_states, strict=True)
        away = [replica for replica, state in pairs if state == _INELIGIBLE and replica not in batch.state.awaited]
        _pass_over(batch, topic, partition, away)


def brokers_failed(batch: Batch, topic: WorkingTopic, failed: Set[int]) -> None:
    """Suspend a deletion until the brokers in ``failed`` that must be told are back."""
    _fail(batch, topic, failed)
    broker_unregistered(batch, topic)


def broker_unregistered(batch: Batch, topic: WorkingTopic) -> None:
    """Stop waiting for unregistered brokers. They cannot report what they remove."""
    _pass_over_away(batch, topic)
    _settle(batch, topic)


def _fail(batch: Batch, topic: WorkingTopic, failed: Set[int]) -> None:
    for partition in topic.partitions:
        pairs = zip(partition.replicas, partition.replica_states, strict=True)
        started = [r for r, state in pairs if state == _STARTED and r in failed]
        _transition(batch, topic, partition, started, lambda state: transition(state, _INELIGIBLE))


def broker_started(batch: Batch, topic: WorkingTopic, broker: int) -> None:
    """Tell a broker that is back to remove the replicas it still has, and other brokers to retry."""
    for partition in topic.partitions:
        lost = partition.lost_logs
        if broker in lost:
            change = PartitionChange(lost_logs=tuple([replica for replica in lost if replica != broker]))
            commit_partition(batch, topic, partition, change, Reason.TOPIC_DELETED)
    if any(broker in partition.replicas for partition in topic.partitions):
        retry(batch, topic)


def retry(batch: Batch, topic: WorkingTopic) -> None:
    """Tell the brokers of ineligible replicas that are online to remove them."""
    for partition in topic.partitions:
        pairs = zip(partition.replicas, partition.replica_states, strict=True)
        addressed = [r for r, state in pairs if state == _INELIGIBLE and r in batch.state.active]
        addressed = [replica for replica in addressed if replica not in partition.lost_logs]
        _transition(batch, topic, partition, addressed, lambda state: to_be_deleted(state, is_served=True))
        _tell(batch, topic, partition, tuple(addressed))
    _pass_over_away(batch, topic)
    _settle(batch, topic)


def resume(batch: Batch, topic: WorkingTopic) -> None:
    """Continue a deletion after a claim: tell active brokers again what to remove, or end it if it waits for none."""
    if are_all_kraft(batch):
        _pass_over_all(batch, topic)
        _settle(batch, topic)
        return
    _fail(batch, topic, batch.state.active)
    retry(batch, topic)


def replica_reported(batch: Batch, topic: WorkingTopic, broker: int, report: OneReport) -> None:
    """Note that a broker's replica is removed, could not be removed, or lost its log directory."""
    outcome = {"deleted": _SUCCESSFUL, "offline": _INELIGIBLE, "error": _INELIGIBLE}.get(report.outcome)
    partition = topic.partition(report.partition)
    if outcome is None or partition is None or broker not in partition.replicas:
        return
    state = partition.replica_states[partition.replicas.index(broker)]
    if state not in (_STARTED, _INELIGIBLE):
        return
    if report.outcome == "offline" and broker not in partition.lost_logs:
        lost = (*partition.lost_logs, broker)
        partition = commit_partition(batch, topic, partition, PartitionChange(lost_logs=lost), Reason.TOPIC_DELETED)
    if state == _STARTED:
        _transition(batch, topic, partition, [broker], lambda state: transition(state, outcome))
        _settle(batch, topic)


def _transition(
    batch: Batch,
    topic: WorkingTopic,
    partition: Partition,
    brokers: Collection[int],
    next_state: Callable[[ReplicaState], ReplicaState],
) -> Partition:
    """Take a partition's replicas on ``brokers`` to other states."""
    if not brokers:
        return partition
    pairs = zip(partition.replicas, partition.replica_states, strict=True)
    states = tuple([next_state(state) if replica in brokers else state for replica, state in pairs])
    return commit_partition(batch, topic, partition, PartitionChange(replica_states=states), Reason.TOPIC_DELETED)


def _state_of(topic: WorkingTopic) -> TopicState:
    if topic.has_replica_in(_INELIGIBLE):
        return TopicState.ineligible
    return TopicState.deleting if topic.has_replica_in(_STARTED) else TopicState.deleted


def _settle(batch: Batch, topic: WorkingTopic) -> None:
    """Commit the state of the deletion if it has changed."""
    state = _state_of(topic)
    if state != topic.state:
        commit_deletion_state(batch, topic, state)


def brokers_left(topic: WorkingTopic) -> list[int]:
    """List the brokers that have yet to remove replicas of a topic that is being deleted."""
    left: set[int] = set()
    for partition in topic.partitions:
        pairs = zip(partition.replicas, partition.replica_states, strict=True)
        left.update([replica for replica, state in pairs if state != _SUCCESSFUL])
    return sorted(left)
