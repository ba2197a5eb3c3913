"""The partitions of brokers that fail or start (``KafkaController.onBrokerFailure``, ``onBrokerStartup``,
``onReplicasBecomeOffline``).
"""

from collections.abc import Set

from msgspec.structs import replace

from controller_logic import deletion, partition_machine, removal, request_epochs, unclean_recovery
from controller_logic.batch import Batch
from controller_logic.commit import commit_partition, recheck_reassignment, tell_leader_and_isr
from controller_logic.commit_alike import Alike
from controller_logic.replica_machine import ReplicaStates, online_replicas, states_with_offline, states_with_online
from controller_logic.working_topic import WorkingTopic
from state.change import PartitionChange
from state.directories import is_readable
from state.ids import NO_EPOCH, NO_LEADER
from state.partition import Partition, RemovedReplica
from state.reason import Reason


def brokers_failed(
    batch: Batch, failed: Set[int], *, have_whole_logs: bool = True, have_former_logs: bool = False
) -> None:
    """Take all replicas on ``failed`` offline, and elect new leaders where a leader is among them.

    The caller has already committed that these brokers are not active. Their logs may have lost their ends if they do
    not ``have_whole_logs``, and no more than their ends if they ``have_former_logs``.
    """
    unproven = frozenset() if have_whole_logs else failed
    crashed = failed if have_former_logs else frozenset()
    alike = Alike(batch, replicas_failed, failed)
    for topic in batch.state.topics():
        if topic.is_deleting:
            deletion.brokers_failed(batch, topic, failed)
            continue
        for partition in topic.partitions.on(failed):
            removed = removal.held_up(batch, partition, failed) if partition.removed else ()
            if removed != partition.removed:
                replicas_failed(batch, topic, partition, failed, unproven, removed, crashed)
            elif not failed.isdisjoint(partition.replicas):
                asked = (have_whole_logs, have_former_logs)
                alike.commit(topic, partition, failed, unproven, None, crashed, asked=asked)


def replicas_failed(
    batch: Batch,
    topic: WorkingTopic,
    partition: Partition,
    failed: Set[int],
    unproven: Set[int] = frozenset(),
    removed: tuple[RemovedReplica, ...] | None = None,
    crashed: Set[int] = frozenset(),
) -> None:
    """Take one partition's replicas on ``failed`` offline, with ``removed`` as its removed replicas from now on.

    The logs of ``unproven`` ones may have lost their ends, and those of ``crashed`` ones no more than that. All is one
    change, because between two a reassignment could end under a leader that is gone.
    """
    states = states_with_offline(partition, failed)
    online = online_replicas(partition.replicas, states, batch.state.active)
    change = partition_machine.without(
        partition,
        failed,
        states,
        online,
        unclean_allowed=topic.unclean_allowed,
        keeps_last=not batch.state.has_eligible_leaders,
    )
    if removed is not None:
        change = replace(change or PartitionChange(), removed=removed)
    if not unproven.isdisjoint((*partition.isr, *partition.elr, *partition.former_members)):
        change = replace(change or PartitionChange(), unproven=unproven, crashed=crashed)
    addressed = batch.state.live_replicas(partition, but=failed)
    if change is None:
        # A replica that was out of sync before and is down now no longer holds the reassignment up.
        recheck_reassignment(batch, topic, partition, to=addressed)
        return
    commit_partition(batch, topic, partition, change, failure_reason(change), to=addressed)


def failure_reason(change: PartitionChange) -> Reason:
    """Return the reason for taking failed replicas out of leadership and ISR."""
    if change.unclean or change.eligible:
        return reason_outside_isr(change)
    return Reason.REPLICA_FENCED if change.leader is None else Reason.LEADER_FENCED


def reason_outside_isr(change: PartitionChange) -> Reason:
    """Return the reason for electing a replica outside the ISR."""
    if change.compared:
        return Reason.LOG_ELECTION
    return Reason.UNCLEAN_ELECTION if change.unclean else Reason.ELIGIBLE_ELECTION


def broker_started(batch: Batch, broker: int) -> None:
    """Bring all replicas on ``broker`` online, elect where there is no leader, and tell it who leads the rest."""
    alike = Alike(batch, replica_started, (broker,))
    for topic in batch.state.topics():
        if topic.is_deleting:
            deletion.broker_started(batch, topic, broker)
            continue
        for partition in topic.partitions.on({broker}):
            if broker in partition.replicas:
                if is_readable(partition, batch.state.brokers[broker]):
                    alike.commit(topic, partition, broker)
            elif partition.removed:
                removal.broker_started(batch, topic, partition, broker)


def broker_unregistered(batch: Batch, broker: int) -> None:
    """Stop waiting for ``broker`` to delete replicas that reassignments removed."""
    for topic in batch.state.topics():
        if topic.is_deleting:
            deletion.broker_unregistered(batch, topic)
            continue
        for partition in topic.partitions.moving():
            if removal.is_removed(partition, broker):
                removal.broker_unregistered(batch, topic, partition, broker)


def replica_started(batch: Batch, topic: WorkingTopic, partition: Partition, broker: int) -> None:
    """Bring one partition's replica on ``broker`` online."""
    states = states_with_online(partition, broker)
    if partition.leader == NO_LEADER:
        change = elected(batch, topic, partition, states)
        if change is not None:
            commit_partition(batch, topic, partition, change, election_reason(partition, change))
            return
    after = commit_partition(batch, topic, partition, PartitionChange(replica_states=states), Reason.REPLICA_ONLINE)
    if after.partition_epoch == partition.partition_epoch != NO_EPOCH:
        request_epochs.request(batch, topic, after, broker)
        reason = without_leader_reason(after, broker, Reason.REPLICA_ONLINE)
        tell_leader_and_isr(batch, topic, after, reason, to=(broker,))


def without_leader_reason(partition: Partition, broker: int, otherwise: Reason) -> Reason:
    """Return the reason for telling ``broker`` that there is no leader: its replica lost the log, or ``otherwise``."""
    return Reason.LOG_LEFT_BEHIND if broker in partition.lost_logs and broker in partition.isr else otherwise


def election_reason(partition: Partition, change: PartitionChange) -> Reason:
    """Return the reason for electing a leader where there was none."""
    if change.unclean or change.eligible:
        return reason_outside_isr(change)
    return Reason.TOPIC_CREATED if partition.leader_epoch == NO_EPOCH else Reason.LEADER_RETURNED


def elect_leaderless(batch: Batch, topic: WorkingTopic) -> None:
    """Elect in each partition of a topic that has no leader, where its settings now allow it."""
    if topic.is_deleting:
        return
    for partition in topic.partitions:
        if partition.leader == NO_LEADER:
            elect_leader(batch, topic, partition)


def elect_leader(batch: Batch, topic: WorkingTopic, partition: Partition) -> None:
    """Elect in a partition that has no leader, if a replica may lead it."""
    change = elected(batch, topic, partition, partition.replica_states)
    if change is not None:
        commit_partition(batch, topic, partition, change, election_reason(partition, change))


def elected(batch: Batch, topic: WorkingTopic, partition: Partition, states: ReplicaStates) -> PartitionChange | None:
    """Return the election in a partition that has no leader; None if no replica may lead it yet."""
    online = online_replicas(partition.replicas, states, batch.state.active)
    return partition_machine.elected_online(
        partition, online, unclean_allowed=topic.unclean_allowed, by_logs=topic.recovery is not None, states=states
    ) or unclean_recovery.elected(batch, topic, partition, online, states)


def recheck_reassignments(batch: Batch, topic: WorkingTopic) -> None:
    """End the reassignments of a topic that wait for nothing more, after fewer in-sync replicas suffice."""
    for partition in topic.partitions.moving():
        recheck_reassignment(batch, topic, partition)


def elect_all_leaderless(batch: Batch) -> None:
    """Elect in each partition that has no leader. If there is none, no topic is loaded."""
    if batch.state.totals.leaderless:
        for topic in batch.state.topics():
            elect_leaderless(batch, topic)
