"""Commit what a rule decided about a topic: apply, count, record."""

from controller_logic.batch import Batch
from controller_logic.replica_machine import ReplicaStates
from controller_logic.working_topic import WorkingTopic
from state.directories import kept, with_new_replicas
from state.partition import Partition, PartitionState, Topic, TopicState
from state.reason import Reason


def commit_new_topic(batch: Batch, topic: Topic, reason: Reason = Reason.TOPIC_CREATED) -> WorkingTopic:
    """Commit a topic that has no partitions yet."""
    added = batch.state.add_topic(topic)
    batch.recorder.say_topic(added, reason)
    return added


def commit_new_partition(
    batch: Batch, topic: WorkingTopic, replicas: tuple[int, ...], states: ReplicaStates
) -> Partition:
    """Commit a new partition. No decision is recorded, because its first election is one."""
    left = batch.state.dirs_left
    directories = kept(with_new_replicas(None, replicas, left)) if left else ()
    number = len(topic.partitions)
    partition = Partition(number, PartitionState.NewPartition, replicas, states, directories=directories)
    topic.append(partition)
    batch.state.totals.add_partition(topic, partition)
    return partition


def put_found_partition(batch: Batch, topic: WorkingTopic, partition: Partition) -> None:
    """Put a partition in as another controller left it. The caller records a decision about it."""
    topic.append(partition)
    batch.state.totals.add_partition(topic, partition)


def commit_topic_config(batch: Batch, topic: WorkingTopic, config: dict[str, str]) -> None:
    """Commit a topic's own settings. The totals depend on its min.insync.replicas."""
    batch.state.totals.take_out_partitions(topic)
    topic.put_config(config, batch.state.policy, batch.state.has_log_reports)
    batch.state.totals.put_back_partitions(topic)
    batch.recorder.say_config("topic", topic.topic, config)


def commit_deletion_waits(batch: Batch, topic: WorkingTopic) -> None:
    """Commit that a topic will be deleted once none of its partitions is reassigned."""
    topic.put_state(topic.state, deletion_waits=True)
    batch.recorder.say_topic(topic, Reason.TOPIC_DELETED)


def commit_deletion_begins(batch: Batch, topic: WorkingTopic) -> None:
    """Commit that a topic is being deleted. ``commit_deletion_state`` records the progress of its replicas."""
    commit_deletion_not_due(batch, topic.topic)
    batch.state.totals.take_out(topic)
    topic.put_state(TopicState.deleting, deletion_waits=False)


def commit_deletion_not_due(batch: Batch, name: str) -> None:
    """Commit that no deletion of this topic is about to begin."""
    batch.state.deletions_due.discard(name)


def commit_deletion_state(batch: Batch, topic: WorkingTopic, state: TopicState) -> None:
    """Commit how far a deletion has got. A topic that is ``deleted`` is gone."""
    topic.put_state(state, deletion_waits=False)
    batch.recorder.say_topic(topic, Reason.TOPIC_DELETED)
    if state == TopicState.deleted:
        batch.state.remove_topic(topic)
