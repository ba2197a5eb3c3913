"""Begin or cancel a reassignment (KIP-455; ``KafkaController.processApiPartitionReassignment``)."""

from controller_logic import deletion
from controller_logic.batch import Batch
from controller_logic.commit import commit_partition
from controller_logic.fencing import Refusal
from controller_logic.partition_results import answer_committed
from controller_logic.reassignment import change_to_begin, origin_of
from controller_logic.working_topic import WorkingTopic
from state.events import AlterReassignment
from state.partition import Partition
from state.reason import Reason


def alter_reassignment(batch: Batch, event: AlterReassignment) -> None:
    """Begin to move a partition, or with null move it back. The answer has the partition as committed."""
    topic = batch.state.topic(event.topic)
    partition = None if topic is None else topic.partition(event.partition)
    if topic is None or partition is None or topic.is_deleting:
        message = f"there is no partition {event.topic}-{event.partition}"
        batch.recorder.answer("UNKNOWN_TOPIC_OR_PARTITION", message, topic=event.topic, partition=event.partition)
        return
    refusal = _complaint(batch, topic, partition, event.replicas)
    if refusal is None:
        refusal = _move(batch, topic, partition, event.replicas)
    answer_committed(batch, topic, topic.partitions[event.partition], *(refusal or ()))


def _move(batch: Batch, topic: WorkingTopic, partition: Partition, replicas: tuple[int, ...] | None) -> Refusal | None:
    target = origin_of(partition) if replicas is None else replicas
    change = change_to_begin(
        partition,
        target,
        batch.state.broker_sets,
        unclean_allowed=topic.unclean_allowed,
        by_logs=topic.recovery is not None,
    )
    if change is not None:
        reason = Reason.ELIGIBLE_ELECTION if change.eligible else Reason.REASSIGNMENT
        after = commit_partition(batch, topic, partition, change, reason)
        is_withheld = after is partition
        return Refusal("UNKNOWN_SERVER_ERROR", "the change would break an invariant") if is_withheld else None
    if topic.deletion_waits:
        # The records that would be lost are to be deleted anyway.
        deletion.begin(batch, topic)
        return None
    message = "nobody who has all records could lead the replicas that are left"
    return Refusal("INVALID_REPLICA_ASSIGNMENT", message)


def _complaint(
    batch: Batch, topic: WorkingTopic, partition: Partition, replicas: tuple[int, ...] | None
) -> Refusal | None:
    """Return what is wrong with a target. As in Kafka's ZooKeeper mode, added brokers must be active."""
    if replicas is None:
        if partition.is_reassigning:
            return None
        return Refusal("NO_REASSIGNMENT_IN_PROGRESS", "the partition is not being reassigned")
    if topic.deletion_waits:
        return Refusal("UNKNOWN_TOPIC_OR_PARTITION", f"topic {topic.topic} is being deleted")
    added = [r for r in replicas if r not in origin_of(partition)]
    away = [r for r in added if r not in batch.state.active]
    message = None
    if not replicas:
        message = "a partition has no replica"
    elif len(set(replicas)) != len(replicas):
        message = f"{list(replicas)} names a broker twice"
    elif away:
        message = f"brokers {away} are added and not active"
    elif cordoned := [r for r in added if batch.state.brokers[r].is_cordoned]:
        message = f"brokers {cordoned} are added, and all their log directories are cordoned"
    return None if message is None else Refusal("INVALID_REPLICA_ASSIGNMENT", message)
