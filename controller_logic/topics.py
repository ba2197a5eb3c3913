"""Create topics and partitions (``ZkAdminManager``, ``AdminZkClient``; KIP-4, 195, 464)."""

from controller_logic import deletion
from controller_logic.batch import Batch
from controller_logic.commit import commit_partition
from controller_logic.commit_alike import Alike
from controller_logic.commit_topic import commit_new_partition, commit_new_topic
from controller_logic.config import complaint_about_topic_config, complaint_of_brokers, text_of
from controller_logic.config_limits import complaint_about_size
from controller_logic.deletion import are_all_kraft
from controller_logic.election import elect_first
from controller_logic.fencing import Refusal
from controller_logic.partition_machine import led_by
from controller_logic.placement import Racks, Start, place_registered, start_of, with_rack_of_the_others
from controller_logic.replica_machine import first_states, online_replicas
from controller_logic.working_topic import WorkingTopic
from state.events import CreatePartitions, CreateTopic
from state.ids import NO_LEADER, topic_id_of
from state.partition import Partition, PartitionState, Topic, TopicState
from state.reason import Reason
from state.topic_name import complaint_about_topic_name

PARTITIONS_MAX = 100_000
# The answer to a creation names every replica.
REPLICAS_MAX = 1_000_000
_DEFAULT = -1

Replicas = list[tuple[int, ...]]


def create_topic(batch: Batch, event: CreateTopic) -> None:
    """Create a topic. Each of its partitions gets a leader at once if a replica is online.

    With ``validate_only`` nothing is created, and the answer has the assignment that would be.
    """
    topic_id = topic_id_of(event.topic, batch.state.seq)
    config = {key: value for key, value in text_of(event.config).items() if value is not None}
    refusal = complaint_about_creation(batch, event.topic, config)
    assignment = refusal or _invalid_config(complaint_of_brokers(batch, config)) or _assignment(batch, event, topic_id)
    if isinstance(assignment, Refusal):
        batch.recorder.answer(*assignment, topic=event.topic)
        return
    by_number = {str(number): replicas for number, replicas in enumerate(assignment)}
    if event.validate_only:
        batch.recorder.answer(topic=event.topic, assignment=by_number)
        return
    topic = commit_new_topic(batch, Topic(event.topic, topic_id, TopicState.created, config, ()))
    _add_partitions(batch, topic, assignment, Reason.TOPIC_CREATED)
    batch.recorder.answer(topic=event.topic, topic_id=topic_id, assignment=by_number)


def create_partitions(batch: Batch, event: CreatePartitions) -> None:
    """Add partitions to a topic, with as many replicas as its first one. With ``validate_only``, only answer."""
    topic = batch.state.topic(event.topic)
    if topic is None or topic.is_queued_for_deletion:
        message = f"there is no topic {event.topic}" if topic is None else _how_it_stands(topic)
        batch.recorder.answer("UNKNOWN_TOPIC_OR_PARTITION", message, topic=event.topic)
        return
    if topic.is_reassigning and not are_all_kraft(batch):
        message = f"a partition of topic {event.topic} is being reassigned"
        batch.recorder.answer("REASSIGNMENT_IN_PROGRESS", message, topic=event.topic)
        return
    assignment = _added_assignment(batch, topic, event)
    if isinstance(assignment, Refusal):
        batch.recorder.answer(*assignment, topic=event.topic)
        return
    first = len(topic.partitions)
    _add_partitions(batch, topic, assignment if not event.validate_only else [], Reason.PARTITIONS_CREATED)
    by_number = {str(number): replicas for number, replicas in enumerate(assignment, start=first)}
    batch.recorder.answer(topic=event.topic, topic_id=topic.topic_id, assignment=by_number)


def _add_partitions(batch: Batch, topic: WorkingTopic, assignment: Replicas, reason: Reason) -> None:
    alike = Alike(batch, _add_partition)
    for number, replicas in enumerate(assignment, start=len(topic.partitions)):
        alike.commit(topic, Partition(number, PartitionState.NonExistentPartition, replicas, ()), reason, asked=reason)


def _add_partition(batch: Batch, topic: WorkingTopic, before: Partition, reason: Reason) -> None:
    states = first_states(before.replicas, batch.state.active)
    partition = commit_new_partition(batch, topic, before.replicas, states)
    elected = elect_first(online_replicas(before.replicas, states, batch.state.active))
    if elected is not None:
        commit_partition(batch, topic, partition, led_by(elected), reason)


def complaint_about_creation(batch: Batch, name: str, config: dict[str, str]) -> Refusal | None:
    """Return why a topic of this name with these settings cannot be created; None if it can."""
    complaint = complaint_about_topic_config(batch, config) or complaint_about_size({}, config)
    return _complaint_about_name(batch, name) or _invalid_config(complaint)


def _complaint_about_name(batch: Batch, name: str) -> Refusal | None:
    topic = batch.state.topic(name)
    if topic is not None:
        return Refusal("TOPIC_ALREADY_EXISTS", _how_it_stands(topic))
    message, twin = complaint_about_topic_name(name), batch.state.twin_of(name)
    if message is None and twin is not None:
        message = f"{name} differs from topic {twin} in '.' and '_' only"
    return None if message is None else Refusal("INVALID_TOPIC_EXCEPTION", message)


def _how_it_stands(topic: WorkingTopic) -> str:
    if topic.is_deleting:
        left = deletion.brokers_left(topic)
        return f"topic {topic.topic} is being deleted, and brokers {left} have yet to remove its logs"
    if topic.deletion_waits:
        return f"topic {topic.topic} exists, and will be deleted when its reassignments have ended"
    return f"topic {topic.topic} exists"


def _invalid_config(complaint: str | None) -> Refusal | None:
    return None if complaint is None else Refusal("INVALID_CONFIG", complaint)


def _assignment(batch: Batch, event: CreateTopic, topic_id: str) -> Replicas | Refusal:
    partitions, factor = event.partitions, event.replication_factor
    if event.assignment is not None:
        if not {partitions, factor} <= {None, _DEFAULT}:
            return Refusal("INVALID_REQUEST", "give either an assignment or partitions and replication_factor")
        return _explicit_assignment(batch, event.assignment)
    if partitions is None or partitions == _DEFAULT:
        partitions = batch.state.policy.num_partitions
    if factor is None or factor == _DEFAULT:
        factor = batch.state.policy.default_replication_factor
    if not 0 < partitions <= PARTITIONS_MAX:
        return Refusal("INVALID_PARTITIONS", f"a topic has 1 to {PARTITIONS_MAX} partitions, not {partitions}")
    if (refusal := _complaint_about_factor(batch, factor)) is not None:
        return refusal
    if partitions * factor > REPLICAS_MAX:
        return _too_many_replicas(partitions * factor)
    return _placed(batch, partitions, factor, start_of(topic_id))


def _too_many_replicas(replicas: int) -> Refusal:
    return Refusal("INVALID_REPLICATION_FACTOR", f"a topic has at most {REPLICAS_MAX} replicas, not {replicas}")


def _complaint_about_factor(batch: Batch, factor: int) -> Refusal | None:
    active, fenced = len(_active(batch)), len(_fenced(batch))
    if 0 < factor <= active + fenced and active > 0:
        return None
    brokers = f"{active} active brokers" if not fenced else f"{active + fenced} registered brokers, {active} active"
    return Refusal("INVALID_REPLICATION_FACTOR", f"replication factor {factor} does not fit {brokers}")


def _active(batch: Batch) -> Racks:
    """Return the racks of the active brokers that may get replicas."""
    held = batch.state.brokers
    return {broker: held[broker].rack for broker in batch.state.active if not held[broker].is_cordoned}


def _fenced(batch: Batch) -> Racks:
    """Return the racks of the brokers of Kafka 4 that are not active. They may get replicas all the same."""
    held = batch.state.brokers.values()
    return {
        one.broker: one.rack
        for one in held
        if one.is_kraft and one.broker not in batch.state.active and not one.is_cordoned
    }


def _placed(batch: Batch, partitions: int, factor: int, start: Start, first_partition: int = 0) -> Replicas:
    active, fenced = _active(batch), _fenced(batch)
    if are_all_kraft(batch):
        active, fenced = with_rack_of_the_others(active, fenced)
    return place_registered(active, fenced, partitions, factor, start, first_partition)


def _explicit_assignment(batch: Batch, assignment: dict[str, tuple[int, ...]]) -> Replicas | Refusal:
    if len(assignment) > PARTITIONS_MAX:
        return Refusal("INVALID_PARTITIONS", f"a topic has at most {PARTITIONS_MAX} partitions")
    numbers = sorted(int(number) for number in assignment)
    if not numbers or numbers != list(range(len(numbers))):
        return Refusal("INVALID_REPLICA_ASSIGNMENT", "partitions are numbered from 0 on without a gap")
    listed = [assignment[str(number)] for number in numbers]
    return _complaint_about_replicas(batch, listed, len(listed[0])) or listed


def _complaint_about_replicas(batch: Batch, listed: Replicas, factor: int, first_partition: int = 0) -> Refusal | None:
    for number, replicas in enumerate(listed, first_partition):
        unknown = [broker for broker in replicas if broker not in batch.state.brokers]
        message = None
        if not replicas:
            message = "it has no replica"
        elif len(set(replicas)) != len(replicas):
            message = f"{list(replicas)} names a broker twice"
        elif unknown:
            message = f"brokers {unknown} are not registered"
        elif cordoned := [broker for broker in replicas if batch.state.brokers[broker].is_cordoned]:
            message = f"all log directories of brokers {cordoned} are cordoned"
        elif len(replicas) != factor:
            message = f"{list(replicas)} has not {factor} replicas as the others"
        elif _stays_leaderless(batch, replicas):
            message = f"brokers {list(replicas)} are fenced or shutting down"
        if message is not None:
            return Refusal("INVALID_REPLICA_ASSIGNMENT", f"partition {number}: {message}")
    return None


def _stays_leaderless(batch: Batch, replicas: tuple[int, ...]) -> bool:
    """Return whether no replica may lead, in a cluster with brokers of Kafka 4.

    Such brokers would hear of a topic that lacks this partition, so ``ReplicationControlManager`` refuses it. In
    ZooKeeper mode a partition may wait for its first leader.
    """
    if any(broker in batch.state.active for broker in replicas):
        return False
    return batch.state.quorum.voter != NO_LEADER or any(batch.state.brokers[broker].is_kraft for broker in replicas)


def _added_assignment(batch: Batch, topic: WorkingTopic, event: CreatePartitions) -> Replicas | Refusal:
    count = len(topic.partitions)
    added = event.total - count
    if added <= 0 or event.total > PARTITIONS_MAX:
        message = f"topic {event.topic} has {count} partitions, and may have up to {PARTITIONS_MAX}: not {event.total}"
        return Refusal("INVALID_PARTITIONS", message)
    first = topic.partitions[0].replicas
    if event.assignment is not None:
        if len(event.assignment) != added:
            message = f"{added} partitions are added, and {len(event.assignment)} assigned"
            return Refusal("INVALID_REPLICA_ASSIGNMENT", message)
        listed = list(event.assignment)
        return _complaint_about_replicas(batch, listed, len(first), count) or listed
    if (refusal := _complaint_about_factor(batch, len(first))) is not None:
        return refusal
    if event.total * len(first) > REPLICAS_MAX:
        return _too_many_replicas(event.total * len(first))
    # As AdminZkClient.createNewPartitionsAssignment: start from the first partition's preferred replica, or from the
    # next broker while that one is away.
    index = next((index for index, broker in enumerate(sorted(_active(batch))) if broker >= first[0]), 0)
    return _placed(batch, added, len(first), Start(index, index), count)
