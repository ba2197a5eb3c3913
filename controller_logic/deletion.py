"""Delete topics: every replica removes its log and says so, then the topic is gone
(``TopicDeletionManager``).

| replica, from           | to                        | when                                              |
|-------------------------|---------------------------|---------------------------------------------------|
| any                     | ReplicaDeletionStarted    | its topic is deleted, and its broker serves       |
| any                     | ReplicaDeletionIneligible | its topic is deleted, and its broker does not     |
| ReplicaDeletionStarted  | ReplicaDeletionSuccessful | its broker reports that the log is removed        |
| ReplicaDeletionStarted  | ReplicaDeletionIneligible | its broker reports a failure, or is fenced        |
| ReplicaDeletionIneligible | ReplicaDeletionStarted  | its broker is active again                        |

A topic is ``ineligible`` while any of its replicas is, else ``deleting``; it is ``deleted`` when the
last replica is successful.
"""

from collections.abc import Callable, Set

from isrflow.controller_logic.draft import Draft
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

    One that is being deleted already is answered as done, as in Kafka.
    """
    topic = draft.topic(event.topic)
    if topic is None:
        draft.answer("UNKNOWN_TOPIC_OR_PARTITION", f"there is no topic {event.topic}", topic=event.topic)
        return
    if not draft.policy.delete_topic_enable:
        draft.answer("TOPIC_DELETION_DISABLED", "delete.topic.enable is false", topic=event.topic)
        return
    if not topic.is_deleting:
        draft.count_out(topic)
        topic.state = TopicState.deleting
        for partition in topic.partitions:
            _begin(draft, topic, partition)
        topic.state = _state_of(topic)
        draft.say_topic(topic, Reason.TOPIC_DELETED)
    draft.answer(topic=event.topic, topic_id=topic.topic_id)


def _begin(draft: Draft, topic: TopicDraft, partition: Partition) -> None:
    states = tuple([_STARTED if replica in draft.live else _INELIGIBLE for replica in partition.replicas])
    change = PartitionChange(state=PartitionState.NonExistentPartition, leader=NO_LEADER, replica_states=states)
    after = draft.change(topic, partition, change, Reason.TOPIC_DELETED, to=())
    _tell(draft, topic, after, draft.live_replicas(after))


def _tell(draft: Draft, topic: TopicDraft, partition: Partition, brokers: tuple[int, ...]) -> None:
    if brokers:
        epoch = EPOCH_DURING_DELETE
        draft.say_stop_replica(topic, partition, Reason.TOPIC_DELETED, leader_epoch=epoch, delete=True, to=brokers)


def brokers_failed(draft: Draft, topic: TopicDraft, failed: Set[int]) -> None:
    """Hold a deletion up until the brokers on ``failed`` are back."""
    _move(draft, topic, lambda broker, state: _INELIGIBLE if broker in failed and state == _STARTED else state)
    _settle(draft, topic)


def broker_started(draft: Draft, topic: TopicDraft, broker: int) -> None:
    """Tell a broker that is back to remove what it missed to remove."""
    for partition in _move(
        draft, topic, lambda replica, state: _STARTED if replica == broker and state == _INELIGIBLE else state
    ):
        _tell(draft, topic, partition, (broker,))
    _settle(draft, topic)


def replica_reported(draft: Draft, topic: TopicDraft, event: ReplicaReport) -> None:
    """Take in that a replica is removed, or could not be."""
    outcome = {"deleted": _SUCCESSFUL, "offline": _INELIGIBLE, "error": _INELIGIBLE}.get(event.outcome)
    partition = topic.partition(event.partition)
    if outcome is None or partition is None:
        return
    pairs = zip(partition.replicas, partition.replica_states, strict=True)
    states = tuple([outcome if r == event.broker and state == _STARTED else state for r, state in pairs])
    if states != partition.replica_states:
        draft.change(topic, partition, PartitionChange(replica_states=states), Reason.TOPIC_DELETED)
        _settle(draft, topic)


def _move(draft: Draft, topic: TopicDraft, moved: Callable[[int, ReplicaState], ReplicaState]) -> list[Partition]:
    """Move the replicas of a topic to other states; return the partitions that have any such."""
    changed = []
    for partition in topic.partitions:
        states = tuple(map(moved, partition.replicas, partition.replica_states))
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
