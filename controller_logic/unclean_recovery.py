"""Elect the most complete log once no replica is in sync or eligible (KIP-966, its second part).

``unclean.recovery.strategy`` says when. While it is set it takes the place of unclean.leader.election.enable, and no
last known leader is elected unseen. Without it these two decide, as in Kafka, which has no such elections yet. Balanced
and Aggressive count as unset once a gateway is known, because the brokers behind it report no logs.

| strategy   | who is elected                                                                                       |
|------------|------------------------------------------------------------------------------------------------------|
| None       | no replica, until an operator asks for an unclean election                                           |
| Balanced   | of all logs, once each crashed member whose broker is registered has reported; of those of replicas  |
|            | that are online, after unclean.recovery.timeout.ms from the first report of one that could lead      |
| Aggressive | of the logs of replicas that are online, as soon as there is one                                     |

The most complete log is the one with the greatest last written leader epoch, and of these the longest. A log that ends
in an earlier epoch lacks what a later leader wrote, however long it is. The first in order of assignment wins a tie.

A report counts while its broker is registered as it was, and it is kept only while there is no leader. So no log in the
comparison has changed since its report. Every election by logs is unclean, because the longest log that is left may
still lack what was committed; a crashed member whose log is proven complete is eligible (``replica_log``).
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from controller_logic.batch import Batch
from controller_logic.commit_cluster import commit_recovery_due
from controller_logic.election import Elected
from controller_logic.partition_machine import led_by
from controller_logic.replica_machine import ReplicaStates
from controller_logic.working_topic import WorkingTopic
from state.change import PartitionChange
from state.features import ELIGIBLE_LEVEL
from state.ids import NO_EPOCH, NO_LEADER
from state.partition import Partition, ReportedLog
from state.policy import COMPARING, RECOVERY_STRATEGY, UncleanRecovery
from state.setting_text import trimmed

_Waiting = tuple[WorkingTopic, Partition]


def complaint_about(batch: Batch, settings: Mapping[str, str | None]) -> str | None:
    """Return why ``settings`` cannot choose a strategy; None if they can, or do not."""
    strategy = trimmed(settings.get(RECOVERY_STRATEGY) or "")
    if not strategy:
        return None
    if batch.state.level < ELIGIBLE_LEVEL:
        level = batch.state.level
        return f"{RECOVERY_STRATEGY} needs level {ELIGIBLE_LEVEL}, and the level is {level}: raise it first"
    if strategy in COMPARING and not batch.state.has_log_reports:
        return f"{RECOVERY_STRATEGY} cannot be {strategy} with a gateway: the brokers behind it report no logs"
    return None


def is_waiting(partition: Partition) -> bool:
    """Return whether no replica that is left can lead without an unclean election."""
    has_records = partition.isr or partition.elr
    return partition.leader == NO_LEADER and not has_records and partition.leader_epoch != NO_EPOCH


def elected(
    batch: Batch, topic: WorkingTopic, partition: Partition, online: tuple[int, ...], states: ReplicaStates
) -> PartitionChange | None:
    """Return the election of the most complete log; None if the strategy elects none now."""
    strategy = topic.recovery
    if strategy in (None, UncleanRecovery.NoElection) or not is_waiting(partition):
        return None
    logs = _current(batch, partition)
    compared = [log for log in logs if log.broker in online]
    if not compared:
        return None
    if strategy is UncleanRecovery.Balanced and not _is_due(batch, topic, partition):
        awaited = {*partition.former_members, *partition.last_known_elr}.intersection(batch.state.brokers)
        if not awaited.issubset([log.broker for log in logs]):
            return None
        compared = logs
    return _won(partition, compared, online, states)


def asked_for(
    batch: Batch, topic: WorkingTopic, partition: Partition, online: tuple[int, ...]
) -> PartitionChange | None:
    """Return the election of the most complete log that an operator asks for; None without a strategy or a log."""
    logs = [log for log in _current(batch, partition) if log.broker in online]
    if topic.recovery is None or not logs or not is_waiting(partition):
        return None
    return _won(partition, logs, online, partition.replica_states)


def _won(
    partition: Partition, compared: Sequence[ReportedLog], online: tuple[int, ...], states: ReplicaStates
) -> PartitionChange | None:
    best = most_complete(partition, compared)
    if best.broker not in online:
        return None
    won = led_by(Elected(best.broker, (best.broker,), unclean=True), states)
    return replace(won, compared=tuple(compared))


def most_complete(partition: Partition, logs: Iterable[ReportedLog]) -> ReportedLog:
    """Return the log that ends in the latest leader epoch, and of these the longest."""
    place = partition.replicas.index
    return max(logs, key=lambda log: (log.last_written_epoch, log.log_end_offset, -place(log.broker)))


def _current(batch: Batch, partition: Partition) -> list[ReportedLog]:
    """List the logs whose brokers are registered as they were when they reported."""
    brokers = batch.state.brokers
    return [
        log
        for log in partition.reported_logs
        if log.broker in brokers and brokers[log.broker].broker_epoch == log.broker_epoch
    ]


def _is_due(batch: Batch, topic: WorkingTopic, partition: Partition) -> bool:
    """Return whether a partition has waited for long enough. Its wait begins with the first call."""
    due_ms = batch.state.recoveries_due.get((topic.topic, partition.partition))
    if due_ms is None:
        due_ms = batch.state.now_ms + batch.state.policy.unclean_recovery_timeout_ms
        commit_recovery_due(batch, topic.topic, partition.partition, due_ms)
    return batch.state.now_ms >= due_ms


def waiting_now(batch: Batch, until_ms: int | None = None) -> list[_Waiting]:
    """List the partitions that wait for logs, or those of them whose wait is over at ``until_ms``."""
    found = []
    for (name, number), due_ms in sorted(batch.state.recoveries_due.items()):
        topic = batch.state.topic(name)
        partition = None if topic is None or topic.is_deleting else topic.partition(number)
        is_asked = until_ms is None or due_ms <= until_ms
        if topic is not None and partition is not None and is_asked and is_waiting(partition):
            found.append((topic, partition))
    return found
