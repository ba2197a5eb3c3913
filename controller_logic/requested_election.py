"""Run the elections that an admin asks for (KIP-183, 460; ``KafkaController.processReplicaLeaderElection``)."""

from controller_logic import partition_machine, unclean_recovery
from controller_logic.availability import election_reason
from controller_logic.batch import Batch
from controller_logic.commit import commit_partition
from controller_logic.election import elect_preferred
from controller_logic.fencing import Refusal
from controller_logic.partition_results import answer_by_partition, result_of
from controller_logic.replica_machine import online_replicas
from controller_logic.working_topic import WorkingTopic
from state.canonical import RESULTS_MAX
from state.change import PartitionChange
from state.decisions import PartitionResult
from state.events import ElectLeaders, TopicPartition
from state.ids import NO_LEADER
from state.partition import Partition
from state.reason import Reason
from state.topic_name import NAME_LENGTH_MAX

_NOT_NEEDED = "ELECTION_NOT_NEEDED"


def elect_leaders(batch: Batch, event: ElectLeaders) -> None:
    """Elect in the partitions named, or in all. Each shard answers for the topics that belong to it.

    If all partitions are asked for, those that need no election are left out of the answer, as in Kafka.
    """
    results = []
    if event.partitions is None:
        for topic in batch.state.topics():
            if not topic.is_queued_for_deletion:
                results += _elect_in_topic(batch, topic, event.election_type)
    elif len(event.partitions) > RESULTS_MAX:
        batch.recorder.answer("INVALID_REQUEST", f"name at most {RESULTS_MAX} partitions, not {len(event.partitions)}")
        return
    else:
        for named in sorted(set(event.partitions)):
            if batch.state.cluster.holds(named.topic):
                results.append(result_of(named.topic, named.partition, _elect_named(batch, named, event.election_type)))
    answer_by_partition(batch, results, part=True)


def _elect_in_topic(batch: Batch, topic: WorkingTopic, election_type: str) -> list[PartitionResult]:
    results = []
    for partition in topic.partitions:
        refusal = _elect(batch, topic, partition, election_type)
        if refusal is None or refusal.error != _NOT_NEEDED:
            results.append(result_of(topic.topic, partition.partition, refusal))
    return results


def _elect_named(batch: Batch, named: TopicPartition, election_type: str) -> Refusal | None:
    topic = batch.state.topic(named.topic)
    partition = None if topic is None else topic.partition(named.partition)
    if topic is None or partition is None:
        # A name too long for any topic is not repeated, because the answer may be long already.
        name = f"{named.topic}-{named.partition}" if len(named.topic) <= NAME_LENGTH_MAX else "of such a name"
        return Refusal("UNKNOWN_TOPIC_OR_PARTITION", f"there is no partition {name}")
    if topic.is_queued_for_deletion:
        return Refusal("INVALID_TOPIC_EXCEPTION", f"topic {named.topic} is being deleted")
    return _elect(batch, topic, partition, election_type)


def _elect(batch: Batch, topic: WorkingTopic, partition: Partition, election_type: str) -> Refusal | None:
    """Elect in one partition; return the refusal if that is not possible."""
    online = online_replicas(partition.replicas, partition.replica_states, batch.state.active)
    is_preferred = election_type == "preferred"
    change = _preferred(partition, online) if is_preferred else _unclean(batch, topic, partition, online)
    if isinstance(change, Refusal):
        return change
    reason = Reason.PREFERRED_ELECTION if election_type == "preferred" else election_reason(partition, change)
    after = commit_partition(batch, topic, partition, change, reason)
    return None if after is not partition else Refusal("UNKNOWN_SERVER_ERROR", "an invariant would break")


def _preferred(partition: Partition, online: tuple[int, ...]) -> PartitionChange | Refusal:
    preferred = partition.replicas[0]
    if partition.leader == preferred:
        return Refusal(_NOT_NEEDED, f"broker {preferred} leads already")
    elected = elect_preferred(partition.replicas, partition.in_sync, online)
    if elected is None:
        return Refusal("PREFERRED_LEADER_NOT_AVAILABLE", f"broker {preferred} is not in sync and online")
    return partition_machine.led_by(elected)


def _unclean(
    batch: Batch, topic: WorkingTopic, partition: Partition, online: tuple[int, ...]
) -> PartitionChange | Refusal:
    """Elect whatever the settings allow; with a recovery strategy, by logs if any are known."""
    if partition.leader != NO_LEADER:
        return Refusal(_NOT_NEEDED, f"broker {partition.leader} leads")
    change = unclean_recovery.asked_for(batch, topic, partition, online)
    change = change or partition_machine.elected_online(partition, online, unclean_allowed=True)
    return change or Refusal("ELIGIBLE_LEADERS_NOT_AVAILABLE", "no replica is online")
