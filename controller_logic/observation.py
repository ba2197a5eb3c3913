"""What the controller of an observed cluster did: predict it, compare, and adopt what was observed.

The state is always that of the cluster. ``audit`` says where the rules would have decided otherwise.

An operation's results are whole rows, so the state after it does not depend on the state before. Rows that say what is
known already change nothing, and no decision follows from them.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Set

from msgspec.structs import replace

from controller_logic import audit, shadow
from controller_logic.batch import Batch
from controller_logic.commit_cluster import commit_broker
from controller_logic.commit_observed import (
    commit_observed_partition,
    commit_replica_states,
    commit_row_left_out,
    commit_topic_gone,
)
from controller_logic.commit_topic import commit_new_topic
from controller_logic.kraft_dialect import Scene
from controller_logic.log_directories import offline_dirs
from controller_logic.observed_reasons import reason_of_broker, reason_of_partition, reason_of_topic
from controller_logic.observed_settings import adopt_features, adopt_quorum, adopt_settings, topic_settings_of
from controller_logic.replica_machine import ReplicaStates
from controller_logic.working_topic import WorkingTopic
from state.broker import Broker, BrokerState
from state.directories import NO_DIRECTORY, is_readable, kept
from state.events import Observed
from state.ids import NO_LEADER, NO_TIME
from state.log_directory import MIGRATING, UNASSIGNED
from state.observed_events import ObservedBroker, ObservedPartition
from state.partition import LeaderRecoveryState, Partition, PartitionState, ReplicaState, Topic, TopicState

_ONLINE, _OFFLINE = ReplicaState.OnlineReplica, ReplicaState.OfflineReplica


def observed(batch: Batch, event: Observed) -> None:
    """Adopt the results of one operation of the observed controller."""
    if not shadow.takes_in(batch, event):
        return
    adopt_settings(batch, event)
    changed = _adopt_brokers(batch, event)
    _adopt_topics(batch, event)
    scene, rows = audit.scene_of(batch, event), _by_topic(batch, event.results.partitions)
    for name in rows:
        _adopt_partitions(batch, event, scene, name, rows[name])
    _adopt_replica_states(batch, changed)
    audit.audit_rest(batch, event, scene, rows)
    adopt_features(batch, event)
    adopt_quorum(batch, event)
    batch.recorder.answer_if_requested()


def _adopt_brokers(batch: Batch, event: Observed) -> Set[int]:
    """Adopt registrations. Return the brokers that serve other replicas than before."""
    changed = set()
    for row in {row.broker: row for row in event.results.brokers}.values():
        former = batch.state.brokers.get(row.broker)
        broker = _broker_of(row, former)
        if broker != former:
            commit_broker(batch, broker, reason_of_broker(event.cause, former, broker))
            changed.add(row.broker)
    for number in dict.fromkeys(event.results.unregistered_brokers):
        gone = batch.state.brokers.get(number)
        if gone is not None:
            gone = replace(gone, state=BrokerState.unregistered)
            commit_broker(batch, gone, reason_of_broker(event.cause, gone, gone))
            changed.add(number)
    return changed


def _broker_of(row: ObservedBroker, former: Broker | None) -> Broker:
    state = BrokerState.controlled_shutdown if row.shutting_down else BrokerState.active
    return Broker(
        broker=row.broker,
        broker_epoch=row.broker_epoch,
        incarnation=row.incarnation,
        state=BrokerState.fenced if row.fenced else state,
        rack=row.rack,
        listeners=(),
        log_dirs=row.log_dirs,
        last_contact_ms=NO_TIME,
        offline_log_dirs=offline_dirs(former, row.log_dirs),
        is_kraft=True,
        cordoned_log_dirs=row.cordoned_log_dirs,
    )


def _adopt_topics(batch: Batch, event: Observed) -> None:
    results, reason = event.results, reason_of_topic(event.cause)
    held = batch.state.cluster.holds
    created = {row.topic: row for row in results.topics if held(row.topic)}
    for name in dict.fromkeys(row.topic for row in results.deleted_topics if held(row.topic)):
        topic = batch.state.topic(name)
        if topic is not None:
            commit_topic_gone(batch, topic, reason, is_told=name not in created)
    for name, row in created.items():
        topic = batch.state.topic(name)
        if topic is not None and topic.topic_id == row.topic_id:
            continue
        if topic is not None:
            commit_topic_gone(batch, topic, reason, is_told=False)
        config = topic_settings_of(event, name)
        commit_new_topic(batch, Topic(name, row.topic_id, TopicState.created, config, ()), reason)


def _by_topic(batch: Batch, rows: Iterable[ObservedPartition]) -> Mapping[str, dict[int, ObservedPartition]]:
    """Return the rows about this shard's topics: the last one about each partition."""
    found: defaultdict[str, dict[int, ObservedPartition]] = defaultdict(dict)
    for row in rows:
        if batch.state.cluster.holds(row.topic):
            found[row.topic][row.partition] = row
    return found


def _adopt_partitions(
    batch: Batch, event: Observed, scene: Scene, name: str, rows: Mapping[int, ObservedPartition]
) -> None:
    topic = batch.state.topic(name)
    for number in sorted(rows):
        complaint = _complaint_about(topic, rows[number])
        if topic is None or complaint is not None:
            commit_row_left_out(batch, name, number, complaint or "")
            continue
        before = topic.partition(number)
        after = _partition_of(batch, rows[number], before)
        if after != before:
            commit_observed_partition(batch, topic, before, after, reason_of_partition(event.cause, before, after))
            audit.check_partition(batch, event, topic, before, after)
            audit.compare_partition(batch, event, scene, topic, before, after)


def _complaint_about(topic: WorkingTopic | None, row: ObservedPartition) -> str | None:
    """Return why a row cannot be kept; None if it can."""
    if topic is None:
        return "expected the row of its topic before"
    if row.partition > len(topic.partitions):
        return f"expected partition {len(topic.partitions)} before"
    if len(set(row.replicas)) != len(row.replicas):
        return "replicas: expected distinct brokers"
    if row.directories and len(row.directories) != len(row.replicas):
        return "directories: expected one for each replica"
    return None


def _partition_of(batch: Batch, row: ObservedPartition, before: Partition | None) -> Partition:
    """Return a partition as its row says. A partition that never had a leader has an epoch in Kafka all the same."""
    partition = Partition(
        row.partition,
        PartitionState.OfflinePartition if row.leader == NO_LEADER else PartitionState.OnlinePartition,
        row.replicas,
        (_ONLINE,) * len(row.replicas),
        isr=row.isr,
        leader=row.leader,
        leader_epoch=row.leader_epoch,
        partition_epoch=row.partition_epoch,
        leader_recovery_state=LeaderRecoveryState[row.leader_recovery_state],
        adding_replicas=row.adding_replicas,
        removing_replicas=row.removing_replicas,
        directories=kept(tuple([_directory(directory) for directory in row.directories])),
        elr=row.elr,
        last_known_elr=row.last_known_elr,
    )
    states = _states_of(batch, partition)
    return partition if states == partition.replica_states else replace(partition, replica_states=states)


def _directory(directory: str) -> str:
    return NO_DIRECTORY if directory in (MIGRATING, UNASSIGNED) else directory


def _states_of(batch: Batch, partition: Partition) -> ReplicaStates:
    """Return which replicas are online: those whose broker serves and can read their log directory."""
    brokers, sets, replicas = batch.state.brokers, batch.state.broker_sets, partition.replicas
    if sets.have_one_dir(replicas):
        return tuple([_ONLINE if replica in sets.live else _OFFLINE for replica in replicas])
    return tuple(
        [
            _ONLINE if replica in sets.live and is_readable(partition, brokers[replica]) else _OFFLINE
            for replica in replicas
        ]
    )


def _adopt_replica_states(batch: Batch, changed: Set[int]) -> None:
    """Note which replicas of brokers that changed are online."""
    if not changed:
        return
    for topic in batch.state.topics():
        for partition in topic.partitions.on(changed):
            states = _states_of(batch, partition)
            if states != partition.replica_states:
                commit_replica_states(topic, partition, states)
