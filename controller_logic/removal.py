"""See to it that replicas which a reassignment removed are deleted, though their brokers go and come
(``KafkaController.stopRemovedReplicasOfReassignedPartition``).

The classic controller tells once and forgets; here a removed replica is kept until its broker has
reported that the log is gone, and a broker that was away is told when it is back. One that is
unregistered will not be, and is waited for no more; nor is one of Kafka 4 that is away, because it removes
by itself, when it starts, what the metadata log does not assign to it.
"""

from collections.abc import Set

from msgspec.structs import replace

from controller_logic.draft import Draft
from controller_logic.replica_machine import moved, to_be_deleted
from controller_logic.topic_draft import TopicDraft
from state.change import PartitionChange
from state.events import ReplicaReport
from state.partition import Partition, RemovedReplica, ReplicaState
from state.reason import Reason

Removed = tuple[RemovedReplica, ...]

_INELIGIBLE = ReplicaState.ReplicaDeletionIneligible


def is_removed(partition: Partition, broker: int) -> bool:
    """Say whether ``broker`` has yet to remove a replica of this partition."""
    return bool(partition.removed) and any(entry.broker == broker for entry in partition.removed)


def held_up(draft: Draft, partition: Partition, lost: Set[int]) -> Removed:
    """Give what is removed once the deletion waits for the brokers in ``lost`` to be back, as far as it does."""
    awaited = [entry for entry in partition.removed if entry.broker in draft.awaited]
    return tuple([_moved(entry, _INELIGIBLE) if entry.broker in lost else entry for entry in awaited])


def broker_started(draft: Draft, topic: TopicDraft, partition: Partition, broker: int) -> None:
    """Tell a broker that is back to remove what it missed to remove."""
    _begin(draft, topic, partition, frozenset({broker}))


def broker_unregistered(draft: Draft, topic: TopicDraft, partition: Partition, broker: int) -> None:
    """Forget the removed replica of a broker that is known no more."""
    _put(draft, topic, partition, tuple([entry for entry in partition.removed if entry.broker != broker]))


def resume(draft: Draft, topic: TopicDraft, partition: Partition) -> None:
    """Tell all brokers that serve once more what they have yet to remove."""
    partition = _put(draft, topic, partition, held_up(draft, partition, draft.live))
    _begin(draft, topic, partition, draft.live)


def _begin(draft: Draft, topic: TopicDraft, partition: Partition, brokers: Set[int]) -> None:
    removed = [
        _in_state(entry, to_be_deleted(entry.state, is_served=True)) if entry.broker in brokers else entry
        for entry in partition.removed
    ]
    _put(draft, topic, partition, tuple(removed))


def replica_reported(draft: Draft, topic: TopicDraft, partition: Partition, event: ReplicaReport) -> None:
    """Forget a removed replica whose broker has deleted it; hold one up that could not be."""
    removed = []
    for entry in partition.removed:
        if entry.broker != event.broker or event.leader_epoch <= entry.leader_epoch:
            removed.append(entry)
        elif event.outcome == "deleted":
            state = moved(entry.state, ReplicaState.ReplicaDeletionSuccessful, ReplicaState.NonExistentReplica)
            if state != ReplicaState.NonExistentReplica:
                removed.append(entry)
        else:
            removed.append(_moved(entry, _INELIGIBLE) if event.outcome in ("error", "offline") else entry)
    _put(draft, topic, partition, tuple(removed))


def _put(draft: Draft, topic: TopicDraft, partition: Partition, removed: Removed) -> Partition:
    if removed == partition.removed:
        return partition
    return draft.change(topic, partition, PartitionChange(removed=removed), Reason.REASSIGNMENT)


def _moved(entry: RemovedReplica, target: ReplicaState) -> RemovedReplica:
    return _in_state(entry, moved(entry.state, target))


def _in_state(entry: RemovedReplica, state: ReplicaState) -> RemovedReplica:
    return entry if state == entry.state else replace(entry, state=state)
