"""Delete the replicas that a reassignment removed, even if their brokers are away for a while
(``KafkaController.stopRemovedReplicasOfReassignedPartition``).

The classic controller tells brokers once and forgets. Here a removed replica is kept until its broker has reported
that the log is gone, and a broker that was away is told when it is back. Two kinds of brokers are not waited for: one
that is unregistered will not come back, and one of Kafka 4 that is away removes by itself, when it starts, what the
metadata log does not assign to it.
"""

from collections.abc import Set

from msgspec.structs import replace

from controller_logic.batch import Batch
from controller_logic.commit import commit_partition
from controller_logic.replica_machine import to_be_deleted, transition
from controller_logic.working_topic import WorkingTopic
from state.change import PartitionChange
from state.partition import Partition, RemovedReplica, ReplicaState
from state.reason import Reason
from state.topic_events import OneReport

Removed = tuple[RemovedReplica, ...]

_INELIGIBLE = ReplicaState.ReplicaDeletionIneligible


def is_removed(partition: Partition, broker: int) -> bool:
    """Return whether ``broker`` has yet to remove a replica of this partition."""
    return bool(partition.removed) and any(entry.broker == broker for entry in partition.removed)


def held_up(batch: Batch, partition: Partition, lost: Set[int]) -> Removed:
    """Return the removed replicas; the ones on ``lost`` wait until their brokers are back."""
    awaited = [entry for entry in partition.removed if entry.broker in batch.state.awaited]
    return tuple([_transition(entry, _INELIGIBLE) if entry.broker in lost else entry for entry in awaited])


def broker_started(batch: Batch, topic: WorkingTopic, partition: Partition, broker: int) -> None:
    """Tell a broker that is back to remove the replica it still has."""
    _begin(batch, topic, partition, frozenset({broker}))


def broker_unregistered(batch: Batch, topic: WorkingTopic, partition: Partition, broker: int) -> None:
    """Forget the removed replica of a broker that was unregistered."""
    _put(batch, topic, partition, tuple([entry for entry in partition.removed if entry.broker != broker]))


def resume(batch: Batch, topic: WorkingTopic, partition: Partition) -> None:
    """Tell all live brokers once more what they have yet to remove."""
    partition = _put(batch, topic, partition, held_up(batch, partition, batch.state.live))
    _begin(batch, topic, partition, batch.state.live)


def _begin(batch: Batch, topic: WorkingTopic, partition: Partition, brokers: Set[int]) -> None:
    removed = [
        _in_state(entry, to_be_deleted(entry.state, is_served=True)) if entry.broker in brokers else entry
        for entry in partition.removed
    ]
    _put(batch, topic, partition, tuple(removed))


def replica_reported(batch: Batch, topic: WorkingTopic, partition: Partition, broker: int, report: OneReport) -> None:
    """Forget a removed replica that its broker has deleted. Keep one that could not be deleted for later."""
    removed = []
    for entry in partition.removed:
        if entry.broker != broker or report.leader_epoch <= entry.leader_epoch:
            removed.append(entry)
        elif report.outcome == "deleted":
            state = transition(entry.state, ReplicaState.ReplicaDeletionSuccessful, ReplicaState.NonExistentReplica)
            if state != ReplicaState.NonExistentReplica:
                removed.append(entry)
        else:
            removed.append(_transition(entry, _INELIGIBLE) if report.outcome in ("error", "offline") else entry)
    _put(batch, topic, partition, tuple(removed))


def _put(batch: Batch, topic: WorkingTopic, partition: Partition, removed: Removed) -> Partition:
    if removed == partition.removed:
        return partition
    return commit_partition(batch, topic, partition, PartitionChange(removed=removed), Reason.REASSIGNMENT)


def _transition(entry: RemovedReplica, target: ReplicaState) -> RemovedReplica:
    return _in_state(entry, transition(entry.state, target))


def _in_state(entry: RemovedReplica, state: ReplicaState) -> RemovedReplica:
    return entry if state == entry.state else replace(entry, state=state)
