"""The log directories of a broker's replicas, and what follows when one of them fails (KIP-858;
``ReplicationControlManager.handleDirectoriesOffline``, ``handleAssignReplicasToDirs``).

The problem: a broker with several log directories loses one of them and serves the others. Its session goes on, so
nothing tells the controller which replicas are gone.

The insight, from Kafka: the broker says in advance which replica is in which directory, and later only which directory
failed. Then one heartbeat is enough to take many replicas offline.

    registered     log_dirs A, B                                 a new replica is in none yet, and counts as online
    assigned       t-0 in A, t-1 in B                            the partition epoch rises, the leader epoch stays
    A fails        log_dirs B, offline_log_dirs A                t-0 goes offline here: elections, smaller ISRs
    restarted      log_dirs B, offline_log_dirs A                t-1 comes online, t-0 does not
    assigned       t-0 in B                                      t-0 comes online, and has to catch up (``lost_logs``)

A broker with one directory never says where its replicas are, because they can be nowhere else. If it fails, the broker
is fenced.
"""

from collections.abc import Iterator

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from controller_logic import eligible_leaders, fencing, lost_logs, partition_machine
from controller_logic.availability import (
    elected,
    election_reason,
    failure_reason,
    replicas_failed,
    without_leader_reason,
)
from controller_logic.batch import Batch
from controller_logic.commit import commit_partition
from controller_logic.commit_cluster import commit_broker
from controller_logic.commit_reports import commit_known_directory
from controller_logic.replica_machine import online_replicas, states_with_offline, states_with_online
from controller_logic.working_topic import WorkingTopic
from state.broker import Broker
from state.change import PartitionChange
from state.decisions import PartitionResult
from state.directories import NO_DIRECTORY, all_directories, directory_of, moved_to
from state.directory_events import AssignReplicasToDirs
from state.features import LEVEL_OF_KAFKA_4_3
from state.ids import NO_LEADER
from state.log_directory import MIGRATING, OFFLINE_KEPT_MAX, UNASSIGNED, is_online
from state.partition import Partition, ReplicaState
from state.reason import Reason

# The ids that say that a replica is in no known directory.
_NO_DIRECTORY = (MIGRATING, UNASSIGNED)


def offline_dirs(former: Broker | None, log_dirs: tuple[str, ...]) -> tuple[str, ...]:
    """List the directories that a broker had and that its new registration lacks; none if it always had only one."""
    if former is None or (len(log_dirs) <= 1 and not former.has_several_dirs):
        return ()
    had = dict.fromkeys((*former.log_dirs, *former.offline_log_dirs))
    return tuple([directory for directory in had if directory not in log_dirs])[:OFFLINE_KEPT_MAX]


def registered(batch: Batch, former: Broker | None, broker: Broker) -> None:
    """Note where the replicas of a broker are, unless it has one directory and never had another.

    Until now all may have been in its only one. What a broker with several directories said before it was unregistered
    no longer counts, because gateways forget it too.
    """
    is_as_before = former is not None and former.log_dirs == broker.log_dirs
    if not broker.is_kraft or (is_as_before and not broker.has_several_dirs):
        return
    is_alone = former is not None and former.is_kraft and len(former.log_dirs) == 1
    before = former.log_dirs[0] if is_alone and former is not None and not former.has_several_dirs else NO_DIRECTORY
    # A directory that it cannot read was never its own if its directories changed and none of them was lost.
    forgets_lost = former is not None and former.log_dirs != broker.log_dirs and not broker.offline_log_dirs
    for topic, partition in _partitions_on(batch, broker):
        held = directory_of(partition, broker.broker)
        was_in = held or before
        is_lost = lost_logs.is_lost(former, broker, was_in, was_lost=broker.broker in partition.lost_logs)
        if not broker.has_several_dirs:
            # It needs no entry, unless the log of a partition that waits for it may come back with its directory.
            directory = was_in if is_lost and partition.leader == NO_LEADER else NO_DIRECTORY
        else:
            # Brokers go by its former only directory, even if the log that was lost had been in another one.
            directory = before or held
            if former is None or (forgets_lost and directory not in broker.log_dirs):
                directory = NO_DIRECTORY
        if directory != held:
            partition = commit_known_directory(topic, partition, broker.broker, directory)
        is_away = not is_online(directory, broker.log_dirs)
        if broker.is_live and is_away:
            gone = frozenset({broker.broker})
            replicas_failed(batch, topic, partition, gone, unproven=gone)
        elif is_away or is_lost:
            eligible_leaders.take_out(batch, topic, partition, broker.broker, Reason.BROKER_REGISTERED)
        lost_logs.note(topic, topic.partitions[partition.partition], broker.broker, is_lost=is_lost)


def unregistered(batch: Batch, broker: Broker) -> None:
    """Note where a broker with one directory has the logs of leaderless partitions. It may come back without it."""
    if broker.is_kraft and len(broker.log_dirs) == 1 and not broker.has_several_dirs:
        for topic, partition in _partitions_on(batch, broker):
            is_kept = partition.leader == NO_LEADER and directory_of(partition, broker.broker) == NO_DIRECTORY
            if is_kept and broker.broker not in partition.lost_logs:
                commit_known_directory(topic, partition, broker.broker, broker.log_dirs[0])


def with_cordoned(batch: Batch, broker: Broker, named: tuple[str, ...] | UnsetType) -> Broker:
    """Return a broker with the directories that it wants no new replicas in (KIP-1066).

    A bus at level 1 does not keep them (``state.level``).
    """
    if named is UNSET or not broker.is_kraft or batch.state.level < LEVEL_OF_KAFKA_4_3:
        return broker
    cordoned = tuple([directory for directory in broker.log_dirs if directory in named])
    return broker if cordoned == broker.cordoned_log_dirs else replace(broker, cordoned_log_dirs=cordoned)


def directories_failed(batch: Batch, broker: Broker, offline: tuple[str, ...], reason: Reason | None) -> Broker:
    """Take the replicas in failed directories offline; return the broker as it is then.

    If a broker can read no directory any more, its replicas stay as they are here, because it asks to be fenced.
    ``reason`` is None if another decision about the broker follows, because an event has only one about a broker.
    """
    failed = tuple([directory for directory in broker.log_dirs if directory in offline])
    if not failed or not broker.is_kraft or len(failed) == len(broker.log_dirs):
        return broker
    left = tuple([directory for directory in broker.log_dirs if directory not in failed])
    known = (*broker.offline_log_dirs, *failed)[-OFFLINE_KEPT_MAX:]
    broker = replace(broker, log_dirs=left, offline_log_dirs=known)
    commit_broker(batch, broker, reason)
    for topic, partition in _partitions_on(batch, broker):
        if directory_of(partition, broker.broker) in failed:
            gone = frozenset({broker.broker})
            replicas_failed(batch, topic, partition, gone, unproven=gone)
    return broker


def _partitions_on(batch: Batch, broker: Broker) -> Iterator[tuple[WorkingTopic, Partition]]:
    for topic in batch.state.topics():
        if not topic.is_deleting:
            for partition in topic.partitions.on({broker.broker}):
                if broker.broker in partition.replicas:
                    yield topic, partition


def assign_replicas_to_dirs(batch: Batch, event: AssignReplicasToDirs) -> None:
    """Note in which directory a broker's replicas are. The answer has a result for each."""
    broker = fencing.in_its_epoch(batch, event.broker, event.broker_epoch)
    if broker is None:
        return
    if fencing.cannot_be_kept(batch):
        return
    results = [_assigned(batch, event, broker, number) for number in dict.fromkeys(event.partitions)]
    batch.recorder.answer(topic=event.topic, broker=event.broker, results=tuple(results))


def _assigned(batch: Batch, event: AssignReplicasToDirs, broker: Broker, number: int) -> PartitionResult:
    topic = batch.state.topic(event.topic)
    error, message = "NONE", ""
    if topic is None or topic.is_deleting or event.topic_id not in (None, topic.topic_id):
        error, message = "UNKNOWN_TOPIC_ID", f"there is no topic {event.topic} of that id"
    elif (partition := topic.partition(number)) is None:
        error, message = "UNKNOWN_TOPIC_OR_PARTITION", f"topic {event.topic} has no partition {number}"
    elif broker.broker not in partition.replicas:
        error, message = "NOT_LEADER_OR_FOLLOWER", f"broker {broker.broker} has no replica of {event.topic}-{number}"
    elif not broker.has_several_dirs:
        # Its replicas can be nowhere else, so they have no entries.
        if event.directory not in (*broker.log_dirs, *_NO_DIRECTORY):
            error, message = "INVALID_REQUEST", f"broker {broker.broker} has no log directory {event.directory}"
    else:
        _assign(batch, topic, partition, broker, event.directory)
    return PartitionResult(topic=event.topic, partition=number, error=error, message=message)


def _assign(batch: Batch, topic: WorkingTopic, partition: Partition, broker: Broker, directory: str) -> None:
    """Put a replica into a directory. It goes offline if that has failed, and comes online if it has not.

    Both are one change, because a replica whose directory is known and failed must never be elected in between.
    """
    directory = NO_DIRECTORY if directory in _NO_DIRECTORY else directory
    former, directories = directory_of(partition, broker.broker), moved_to(partition, broker.broker, directory)
    if directories == all_directories(partition):
        return
    # It is not where its log was, and that cannot be read. So its broker made a new one.
    is_lost = broker.broker in partition.lost_logs or not is_online(former, broker.log_dirs)
    partition = lost_logs.note(topic, partition, broker.broker, is_lost=is_lost)
    change, reason = PartitionChange(), Reason.LOG_DIR_ASSIGNED
    state = partition.replica_states[partition.replicas.index(broker.broker)]
    if not is_online(directory, broker.log_dirs):
        gone = frozenset({broker.broker})
        states = states_with_offline(partition, gone)
        online = online_replicas(partition.replicas, states, batch.state.active)
        failed = partition_machine.without(
            partition,
            gone,
            states,
            online,
            unclean_allowed=topic.unclean_allowed,
            keeps_last=not batch.state.has_eligible_leaders,
        )
        change = replace(failed or change, unproven=gone)
        reason = reason if change.isr is None else failure_reason(change)
    elif broker.is_active and state == ReplicaState.OfflineReplica:
        states = states_with_online(partition, broker.broker)
        change = PartitionChange(replica_states=states)
        if partition.leader == NO_LEADER:
            election = elected(batch, topic, partition, states)
            change = election or change
            reason = without_leader_reason(partition, broker.broker, reason)
            reason = reason if election is None else election_reason(partition, election)
    commit_partition(batch, topic, partition, replace(change, directories=directories), reason)
