"""How far each replica's log has come, and when it last had all that its leader had
(``Replica.updateFetchStateOrThrow``, ``ReplicaState.isCaughtUp``).

Each report is treated like one of Kafka's fetches, made at the engine's time of the report. Reports of an earlier
leader epoch do not count, just as a new Kafka leader knows nothing of its followers. Reports from before a broker's
restart do not count either, because its log may have lost its end. A time in the future was noted before a claim set
the clock back, and is ignored.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from state.ids import NO_EPOCH, NO_LEADER, NO_TIME, UNKNOWN_OFFSET
from state.partition import Partition, ReplicaLag

# The place of a replica in the assignment, and where its log ends.
LogEnd = tuple[int, int]
_UNTOLD = ReplicaLag()
_NOWHERE = -1


def with_log_ends(partition: Partition, reported: Sequence[LogEnd], now_ms: int) -> Partition:
    """Return the partition after reports of log ends, in their order, all of the current leader epoch.

    To note them one by one gives the same.
    """
    replicas, epoch = partition.replicas, partition.leader_epoch
    count = len(replicas)
    ends = [*partition.log_end_offsets] or [UNKNOWN_OFFSET] * count
    epochs = [*partition.offset_epochs] or [NO_EPOCH] * count
    lags = [*partition.lags]
    leader = _NOWHERE if partition.leader == NO_LEADER else replicas.index(partition.leader)
    leader_end = leader_end_offset(partition)
    for place, offset in reported:
        if place == leader:
            leader_end = offset
        else:
            lags = lags or [_UNTOLD] * count
            former = lags[place] if epochs[place] == epoch else _UNTOLD
            lags[place] = _lag_after(former, offset, leader_end, now_ms)
        ends[place], epochs[place] = offset, epoch
    return replace(partition, log_end_offsets=tuple(ends), offset_epochs=tuple(epochs), lags=tuple(lags))


def forgotten(partition: Partition, broker: int) -> Partition | None:
    """Return the partition without the report of the replica on ``broker``; None if there was none."""
    if not partition.offset_epochs or broker not in partition.replicas:
        return None
    place = partition.replicas.index(broker)
    if not has_reported(partition, place):
        return None
    epochs = partition.offset_epochs
    return replace(partition, offset_epochs=(*epochs[:place], NO_EPOCH, *epochs[place + 1 :]))


def leader_end_offset(partition: Partition) -> int:
    """Return the end of the leader's log; ``UNKNOWN_OFFSET`` before its first report in the current leader epoch."""
    leader, epochs = partition.leader, partition.offset_epochs
    if leader == NO_LEADER or not epochs:
        return UNKNOWN_OFFSET
    place = partition.replicas.index(leader)
    return partition.log_end_offsets[place] if epochs[place] == partition.leader_epoch else UNKNOWN_OFFSET


def has_reported(partition: Partition, place: int) -> bool:
    """Return whether the replica at ``place`` of the assignment has reported in the current leader epoch."""
    return bool(partition.offset_epochs) and partition.offset_epochs[place] == partition.leader_epoch


def is_caught_up(partition: Partition, place: int, now_ms: int, lag_time_max_ms: int) -> bool:
    """Return whether a follower has all that its leader has, or had it within the last ``lag_time_max_ms``."""
    if not has_reported(partition, place):
        return False
    if partition.log_end_offsets[place] == leader_end_offset(partition):
        return True
    caught_up_time_ms = partition.lags[place].caught_up_time_ms if partition.lags else NO_TIME
    return caught_up_time_ms != NO_TIME and 0 <= now_ms - caught_up_time_ms <= lag_time_max_ms


def _lag_after(former: ReplicaLag, offset: int, leader_end: int, now_ms: int) -> ReplicaLag:
    """Return a follower's lag after a report of ``offset``.

    If it is as far as the leader is now, it has caught up now. If it is as far as the leader was at the previous
    report, it had caught up then: under steady writes a follower is always a little behind.
    """
    former_end = former.leader_end_offset
    if leader_end != UNKNOWN_OFFSET and offset >= leader_end:
        return ReplicaLag(now_ms, now_ms, leader_end if leader_end > former_end else former_end)
    caught_up_time_ms = _past(former.caught_up_time_ms, now_ms)
    if former_end != UNKNOWN_OFFSET and offset >= former_end:
        caught_up_time_ms = max(caught_up_time_ms, _past(former.report_time_ms, now_ms))
    return ReplicaLag(caught_up_time_ms, now_ms, max(leader_end, former_end))


def _past(time_ms: int, now_ms: int) -> int:
    return time_ms if time_ms <= now_ms else NO_TIME
