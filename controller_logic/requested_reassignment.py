"""Take in where an admin wants a partition to be (KIP-455; ``KafkaController.processApiPartitionReassignment``)."""

from controller_logic.draft import Draft
from controller_logic.fencing import Refusal
from controller_logic.reassignment import Brokers, begun, origin_of
from controller_logic.topic_draft import TopicDraft
from state.events import AlterReassignment
from state.partition import Partition
from state.reason import Reason


def alter_reassignment(draft: Draft, event: AlterReassignment) -> None:
    """Begin to move a partition, or with null go back to where it was; the answer holds what is committed."""
    topic = draft.topic(event.topic)
    partition = None if topic is None else topic.partition(event.partition)
    if topic is None or partition is None or topic.is_deleting:
        message = f"there is no partition {event.topic}-{event.partition}"
        draft.answer("UNKNOWN_TOPIC_OR_PARTITION", message, topic=event.topic, partition=event.partition)
        return
    refusal = _complaint(draft, topic, partition, event.replicas)
    if refusal is None:
        target = origin_of(partition) if event.replicas is None else event.replicas
        brokers = Brokers(draft.active, draft.live, draft.awaited)
        change = begun(partition, target, brokers, unclean_allowed=topic.unclean_allowed)
        if change is None:
            message = "nobody who has all records could lead the replicas that are left"
            refusal = Refusal("INVALID_REPLICA_ASSIGNMENT", message)
        else:
            after = draft.change(topic, partition, change, Reason.REASSIGNMENT)
            if after is partition:
                refusal = Refusal("UNKNOWN_SERVER_ERROR", "the change would break an invariant")
            partition = after
    draft.answer_committed(topic, partition, *(refusal or ()))


def _complaint(
    draft: Draft, topic: TopicDraft, partition: Partition, replicas: tuple[int, ...] | None
) -> Refusal | None:
    """Say what is wrong with a target; as in Kafka's ZooKeeper mode those who are added must be active."""
    if replicas is None:
        if partition.is_reassigning:
            return None
        return Refusal("NO_REASSIGNMENT_IN_PROGRESS", "the partition is not being reassigned")
    if topic.deletion_waits:
        return Refusal("UNKNOWN_TOPIC_OR_PARTITION", f"topic {topic.topic} is being deleted")
    away = [r for r in replicas if r not in origin_of(partition) and r not in draft.active]
    message = None
    if not replicas:
        message = "a partition has no replica"
    elif len(set(replicas)) != len(replicas):
        message = f"{list(replicas)} names a broker twice"
    elif away:
        message = f"brokers {away} are added and not active"
    return None if message is None else Refusal("INVALID_REPLICA_ASSIGNMENT", message)
