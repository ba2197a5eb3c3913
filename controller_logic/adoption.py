"""Take over a topic that another controller led before (``KafkaController.initializeControllerContext``).

The topic goes on as it was found, with its id and its epochs, because brokers have both. The decision about a partition
repeats what its brokers know already, unless its leader or a member of its ISR is not active. Then it is the usual
election, which goes on from the epochs that were found.
"""

from controller_logic.availability import elect_leader, replicas_failed
from controller_logic.batch import Batch
from controller_logic.commit import recheck_reassignment, tell_leader_and_isr
from controller_logic.commit_topic import commit_new_topic, put_found_partition
from controller_logic.config import text_of
from controller_logic.fencing import Refusal
from controller_logic.replica_machine import first_states
from controller_logic.topics import complaint_about_creation
from controller_logic.working_topic import WorkingTopic
from state.adoption_events import AdoptTopic, FoundPartition
from state.ids import NO_EPOCH, NO_LEADER, is_topic_id
from state.partition import LeaderRecoveryState, Partition, PartitionState, ReplicaState, Topic, TopicState
from state.reason import Reason


def adopt_topic(batch: Batch, event: AdoptTopic) -> None:
    """Continue a topic as it was found. Refuse one whose name is taken."""
    config = {key: value for key, value in text_of(event.config).items() if value is not None}
    refusal = (
        complaint_about_creation(batch, event.topic, config)
        or _complaint_about_id(event.topic_id)
        or _complaint_about_partitions(event)
    )
    if refusal is not None:
        batch.recorder.answer(*refusal, topic=event.topic)
        return
    found = Topic(event.topic, event.topic_id, TopicState.created, config, ())
    topic = commit_new_topic(batch, found, Reason.TOPIC_ADOPTED)
    for number, partition in enumerate(event.partitions):
        _adopt(batch, topic, number, partition)
    batch.recorder.answer(topic=event.topic, topic_id=event.topic_id)


def _adopt(batch: Batch, topic: WorkingTopic, number: int, found: FoundPartition) -> None:
    """Put a partition in as it was found, and commit what is due in it, so that at most one decision follows."""
    active = batch.state.active
    has_leader = found.leader != NO_LEADER
    partition = Partition(
        number,
        _state_of(found),
        found.replicas,
        # If the former controller left a leader, all replicas begin online. Replicas on inactive brokers fail below.
        (ReplicaState.OnlineReplica,) * len(found.replicas) if has_leader else first_states(found.replicas, active),
        isr=found.isr,
        leader=found.leader,
        leader_epoch=found.leader_epoch,
        partition_epoch=found.partition_epoch,
        leader_recovery_state=LeaderRecoveryState[found.leader_recovery_state],
        adding_replicas=found.adding_replicas,
        removing_replicas=found.removing_replicas,
    )
    put_found_partition(batch, topic, partition)
    if not has_leader:
        elect_leader(batch, topic, partition)
    elif failed := frozenset(found.replicas) - active:
        replicas_failed(batch, topic, partition, failed)
    else:
        recheck_reassignment(batch, topic, partition)
    if topic.partitions[number].partition_epoch == found.partition_epoch != NO_EPOCH:
        tell_leader_and_isr(batch, topic, topic.partitions[number], Reason.TOPIC_ADOPTED, to=())


def _state_of(found: FoundPartition) -> PartitionState:
    if found.leader != NO_LEADER:
        return PartitionState.OnlinePartition
    return PartitionState.NewPartition if found.leader_epoch == NO_EPOCH else PartitionState.OfflinePartition


def _complaint_about_id(topic_id: str) -> Refusal | None:
    if is_topic_id(topic_id):
        return None
    return Refusal("INVALID_REQUEST", f"topic_id {topic_id!r:.40} is expected to be a uuid, 22 characters in base64")


def _complaint_about_partitions(event: AdoptTopic) -> Refusal | None:
    for number, found in enumerate(event.partitions):
        if (complaint := _complaint_about(found)) is not None:
            return Refusal("INVALID_REQUEST", f"partition {number}: {complaint}")
    return None


def _complaint_about(found: FoundPartition) -> str | None:
    """Return what no controller could have left in this state; None if all is possible."""
    replicas, moving = set(found.replicas), (*found.adding_replicas, *found.removing_replicas)
    removing = found.removing_replicas
    was_led = found.leader_epoch != NO_EPOCH
    if not replicas or len(replicas) != len(found.replicas):
        return f"replicas {list(found.replicas)} are expected to be distinct, and at least one"
    if not replicas.issuperset(found.isr) or len(set(found.isr)) != len(found.isr):
        return f"isr {list(found.isr)} is expected to have distinct replicas only"
    if not replicas.issuperset(moving) or len(set(moving)) != len(moving):
        return f"adding_replicas and removing_replicas {list(moving)} are expected to be distinct replicas"
    if removing and set(found.replicas[-len(removing) :]) != set(removing):
        return f"removing_replicas {list(removing)} are expected to be the last replicas"
    if found.leader != NO_LEADER and found.leader not in found.isr:
        return f"leader {found.leader} is expected to be in the isr {list(found.isr)}"
    if was_led != bool(found.isr) or was_led != (found.partition_epoch != NO_EPOCH):
        return "leader_epoch, partition_epoch and isr are expected to be given together"
    if found.leader_recovery_state == LeaderRecoveryState.RECOVERING.name and len(found.isr) != 1:
        return "leader_recovery_state RECOVERING is expected with one member of the isr"
    return None
