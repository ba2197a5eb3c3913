"""Delete topics: every replica removes its log and says so, then the topic is gone
(``TopicDeletionManager``).

Each replica goes through ``OfflineReplica`` to ``ReplicaDeletionStarted`` where its broker serves, else to
``ReplicaDeletionIneligible``; a report makes it ``ReplicaDeletionSuccessful`` or ineligible again (the
moves are those of ``replica_machine``). What is ineligible is tried again when a broker that holds a
replica of the topic starts, when a controller takes over, and when the deletion is asked for again.

A topic is ``ineligible`` while any of its replicas is, else ``deleting``; it is ``deleted`` when the
last replica is successful. While a partition of it is reassigned its deletion waits: the topic is
``ineligible``, and lives on.
"""

from collections.abc import Callable, Set

from isrflow.controller_logic.draft import Draft
from isrflow.controller_logic.replica_machine import moved, to_be_deleted
from isrflow.controller_logic.topic_draft import TopicDraft
from isrflow.state.change import PartitionChange
from isrflow.state.events import DeleteTopic, ReplicaReport
from isrflow.state.ids import NO_LEADER
from isrflow.state.partition import Partition, PartitionState, ReplicaState, TopicState
from isrflow.state.reason import Reason

# Kafka's LeaderAndIsr.EpochDuringDelete: a broker obeys it whatever epoch it holds (KIP-570).
EPOCH_DURING_DELETE = -2

_STARTED = ReplicaState.ReplicaDeletionStarted
_SUCCESSFUL = ReplicaState.ReplicaDeletionSuccessful
_INELIGIBLE = ReplicaState.ReplicaDeletionIneligible


def delete_topic(draft: Draft, event: DeleteTopic) -> None:
    """Begin to delete a topic; its partitions have no leader from now on.

    One that is being deleted already is answered as done, as in Kafka, and what failed is tried again.
    """
    topic = draft.topic(event.topic)
    if topic is None:
        draft.answer("UNKNOWN_TOPIC_OR_PARTITION", f"there is no topic {event.topic}", topic=event.topic)
        return
    if not draft.policy.delete_topic_enable:
        draft.answer("TOPIC_DELETION_DISABLED", "delete.topic.enable is false", topic=event.topic)
        return
    if topic.is_deleting:
        retry(draft, topic)
    elif topic.is_reassigning:
        _wait(draft, topic)
    else:
        _begin(draft, topic)
    draft.answer(topic=event.topic, topic_id=topic.topic_id)


def _wait(draft: Draft, topic: TopicDraft) -> None:
    if not topic.deletion_waits:
        topic.deletion_waits = topic.dirty = True
        draft.waiting.add(topic.topic)
        draft.say_topic(topic, Reason.TOPIC_DELETED)


def begin_waiting(draft: Draft) -> None:
    """Begin the deletions that waited for reassignments which are over now."""
    for name in sorted(draft.waiting):
        topic = draft.topic(name)
        if topic is not None and not topic.is_reassigning:
            _begin(draft, topic)


def _begin(draft: Draft, topic: TopicDraft) -> None:
    draft.waiting.discard(topic.topic)
    draft.count_out(topic)
    topic.state, topic.deletion_waits, topic.dirty = TopicState.deleting, False, True
    for partition in topic.partitions:
        _begin_partition(draft, topic, partition)
    topic.state = _state_of(topic)
    draft.say_topic(topic, Reason.TOPIC_DELETED)


def _begin_partition(draft: Draft, topic: TopicDraft, partition: Partition) -> None:
    # Whoever has yet to remove a replica that a reassignment removed takes part again.
    held = dict(zip(partition.replicas, partition.replica_states, strict=True))
    held |= {entry.broker: entry.state for entry in partition.removed}
    states = tuple([to_be_deleted(state, is_served=replica in draft.live) for replica, state in held.items()])
    change = PartitionChange(
        state=PartitionState.NonExistentPartition,
        leader=NO_LEADER,
        replicas=tuple(held),
        replica_states=states,
        removed=(),
    )
    after = draft.change(topic, partition, change, Reason.TOPIC_DELETED, to=())
    _tell(draft, topic, after, draft.live_replicas(after))


def _tell(draft: Draft, topic: TopicDraft, partition: Partition, brokers: tuple[int, ...]) -> None:
    if brokers:
        epoch = EPOCH_DURING_DELETE
        draft.say_stop_replica(topic, partition, Reason.TOPIC_DELETED, leader_epoch=epoch, delete=True, to=brokers)


def brokers_failed(draft: Draft, topic: TopicDraft, failed: Set[int]) -> None:
    """Hold a deletion up until the brokers on ``failed`` are back."""
    _move(
        draft,
        topic,
        lambda broker, state: moved(state, _INELIGIBLE) if broker in failed and state == _STARTED else state,
    )
    _settle(draft, topic)


def broker_started(draft: Draft, topic: TopicDraft, broker: int) -> None:
    """Tell a broker that is back to remove what it missed to remove, and others to try again."""
    if any(broker in partition.replicas for partition in topic.partitions):
        retry(draft, topic)


def retry(draft: Draft, topic: TopicDraft) -> None:
    """Tell the brokers that serve to remove what is still ineligible."""
    live = draft.live
    before = {partition.partition: partition.replica_states for partition in topic.partitions}
    changed = _move(
        draft,
        topic,
        lambda replica, state: (
            to_be_deleted(state, is_served=True) if state == _INELIGIBLE and replica in live else state
        ),
    )
    for partition in changed:
        trios = zip(partition.replicas, before[partition.partition], partition.replica_states, strict=True)
        _tell(draft, topic, partition, tuple([replica for replica, former, state in trios if former != state]))
    _settle(draft, topic)


def resume(draft: Draft, topic: TopicDraft) -> None:
    """Tell all brokers that serve once more what they have yet to remove."""
    _move(draft, topic, lambda _, state: moved(state, _INELIGIBLE) if state == _STARTED else state)
    retry(draft, topic)


def replica_reported(draft: Draft, topic: TopicDraft, event: ReplicaReport) -> None:
    """Take in that a replica is removed, or could not be."""
    outcome = {"deleted": _SUCCESSFUL, "offline": _INELIGIBLE, "error": _INELIGIBLE}.get(event.outcome)
    partition = topic.partition(event.partition)
    if outcome is None or partition is None:
        return
    pairs = zip(partition.replicas, partition.replica_states, strict=True)
    states = tuple([moved(state, outcome) if r == event.broker and state == _STARTED else state for r, state in pairs])
    if states != partition.replica_states:
        draft.change(topic, partition, PartitionChange(replica_states=states), Reason.TOPIC_DELETED)
        _settle(draft, topic)


def _move(draft: Draft, topic: TopicDraft, move: Callable[[int, ReplicaState], ReplicaState]) -> list[Partition]:
    """Move the replicas of a topic to other states; return the partitions that have any such."""
    changed = []
    for partition in topic.partitions:
        states = tuple(map(move, partition.replicas, partition.replica_states))
        if states != partition.replica_states:
            change = PartitionChange(replica_states=states)
            changed.append(draft.change(topic, partition, change, Reason.TOPIC_DELETED))
    return changed


def _state_of(topic: TopicDraft) -> TopicState:
    held = {state for partition in topic.partitions for state in partition.replica_states}
    if _INELIGIBLE in held:
        return TopicState.ineligible
    return TopicState.deleting if _STARTED in held else TopicState.deleted


def _settle(draft: Draft, topic: TopicDraft) -> None:
    """Say how far the deletion has come, if that is another state than before."""
    state = _state_of(topic)
    if state != topic.state:
        topic.state, topic.dirty = state, True
        draft.say_topic(topic, Reason.TOPIC_DELETED)
        if state == TopicState.deleted:
            draft.remove_topic(topic.topic)
