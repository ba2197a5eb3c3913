"""Derive high watermarks from the ends of replicas' logs.

The problem: consumers may read a record once every in-sync replica has it. In Kafka the leader derives that offset
from its followers' fetches (``Partition.maybeIncrementLeaderHW``). Here replicas report where their logs end
(``log_end_offset``), and a tick derives the high watermark of each partition with a new report.

    hw
    1: =======|====>   12   leader
    2: =======|==>     10   in the ISR
    3: ===|             3   out of sync, not counted
       derived: 10, the lowest end in the ISR

Three details make it right:

* Only ends of the current leader epoch count. A log from before may yet be truncated.
* A replica that is about to join the ISR counts as well, though it never lowers the watermark. Under steady writes the
  watermark would otherwise stay a little ahead of it, and a replica that is behind the watermark may not join.
* Within a leader epoch the watermark never goes back. A new leader may have less than was committed: an unclean one,
  or the last in-sync replica after a crash that cost it the end of its log. Then the watermark goes back to the lowest
  end in the ISR, even while the ISR is below min.insync.replicas. Rejected: keeping the old value. It would stand above
  every log, so writes with acks=all would wait and no replica could join the ISR.
"""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from controller_logic import fencing
from controller_logic.batch import Batch
from controller_logic.commit_reports import (
    commit_log_end,
    commit_risen_watermarks,
    commit_watermark,
    commit_watermark_due,
    commit_watermarks_due,
)
from controller_logic.lag import forgotten, is_caught_up, leader_end_offset, with_log_ends
from controller_logic.replica_machine import online_replicas
from controller_logic.working_topic import WorkingTopic
from state.events import LogEndOffset
from state.ids import NO_EPOCH, NO_LEADER, UNKNOWN_OFFSET
from state.partition import Partition


def log_end_offset(batch: Batch, event: LogEndOffset) -> None:
    """Note where a replica's log ends. The next tick decides what follows from it.

    A report of another leader epoch is ignored: its sender has not heard of the newest leader yet, or reports on an
    earlier one. A report of another broker epoch or topic id is ignored too, if the event has these.
    """
    broker = fencing.registered_broker(batch, event.broker)
    if broker is None:
        return
    found = fencing.reported_partition(batch, event)
    if found is None:
        return
    topic, partition = found
    if partition.removed and any(entry.broker == event.broker for entry in partition.removed):
        batch.recorder.answer_if_requested()
        return
    if event.broker not in partition.replicas:
        refusal = fencing.holds_no_replica(event.broker, event.topic, event.partition)
        fencing.refuse_report(batch, "broker", refusal)
        return
    is_current = event.broker_epoch in (None, broker.broker_epoch)
    if is_current and event.leader_epoch == partition.leader_epoch:
        place = partition.replicas.index(event.broker)
        after = with_log_ends(partition, [(place, event.log_end_offset)], batch.state.now_ms)
        after = noting_a_shorter_log(after, event.broker, event.log_end_offset)
        commit_log_end(batch, topic, after)
        commit_watermark_due(batch, topic, partition)
    batch.recorder.answer_if_requested()


def noting_a_shorter_log(partition: Partition, broker: int, log_end_offset: int) -> Partition:
    """Note that a leader began with less than was committed. Regaining the rest will then be a decision again."""
    is_decided = partition.high_watermark_epoch == partition.leader_epoch
    if is_decided or broker != partition.leader or log_end_offset >= partition.high_watermark:
        return partition
    return replace(partition, high_watermark_epoch=NO_EPOCH)


def forget_log_ends(batch: Batch, broker: int) -> None:
    """Forget what the former incarnation of ``broker`` reported, because its log may have lost its end."""
    for topic in batch.state.topics():
        for partition in topic.partitions.on({broker}):
            after = forgotten(partition, broker)
            if after is not None:
                commit_log_end(batch, topic, after)


class Derived(NamedTuple):
    """The high watermark that the log ends allow."""

    high_watermark: int
    # Whether a joiner holds it below what the ISR alone would allow.
    is_held: bool


def derive_high_watermark(partition: Partition, min_isr: int, joiners: tuple[int, ...]) -> Derived | None:
    """Return the high watermark that the log end offsets allow; None if it must stay.

    Every ISR member must have reported in the current leader epoch. To rise, it also needs an ISR of at least
    min.insync.replicas (Kafka 3.9). It goes back only if the leader has less (``committed_end``), and then even
    while the ISR is below min.insync.replicas. ``joiners`` hold it at their ends and never lower it.
    """
    if partition.leader == NO_LEADER or not partition.log_end_offsets:
        return None
    isr, epoch, epochs, ends = partition.isr, partition.leader_epoch, partition.offset_epochs, partition.log_end_offsets
    if len(isr) < len(epochs):
        reports = zip(partition.replicas, ends, epochs, strict=True)
        ends = tuple([end for replica, end, reported_in in reports if reported_in == epoch and replica in isr])
        if len(ends) < len(isr):
            return None
    # The usual case, in which the ISR is complete, costs no search.
    elif epochs.count(epoch) < len(isr):
        return None
    lowest = min(ends)
    if lowest < partition.high_watermark:
        return Derived(lowest, is_held=False) if lowest >= committed_end(partition) else None
    if len(partition.isr) < min(min_isr, len(partition.replicas)):
        return None
    high_watermark = lowest
    for joiner in joiners:
        end = partition.log_end_offsets[partition.replicas.index(joiner)]
        high_watermark = min(high_watermark, max(end, partition.high_watermark))
    return Derived(high_watermark, high_watermark < lowest)


def joiners_of(batch: Batch, partition: Partition) -> tuple[int, ...]:
    """List the replicas that are about to join the ISR: they are online and have caught up with the leader.

    The leader will ask for them soon. Without them the high watermark could stay ahead of them forever.
    """
    if len(partition.isr) == len(partition.replicas):
        return ()
    lag_time_max_ms = batch.state.policy.replica_lag_time_max_ms
    joiners = []
    for replica in online_replicas(partition.replicas, partition.replica_states, batch.state.active):
        place = partition.replicas.index(replica)
        if replica not in partition.isr and is_caught_up(partition, place, batch.state.now_ms, lag_time_max_ms):
            joiners.append(replica)
    return tuple(joiners)


def committed_end(partition: Partition) -> int:
    """Return the offset up to which the leader holds what was committed. Every in-sync replica has that much.

    That is the high watermark, unless the leader came with less and no watermark was derived in its epoch yet.
    """
    if partition.high_watermark_epoch == partition.leader_epoch:
        return partition.high_watermark
    end = leader_end_offset(partition)
    return partition.high_watermark if end == UNKNOWN_OFFSET else min(end, partition.high_watermark)


def advance_watermarks(batch: Batch) -> None:
    """Derive the high watermark of each partition with a report since the last tick.

    A watermark that a joiner holds is derived again at the next tick, because the joiner may lag out by time alone.
    """
    held: dict[str, set[int]] = {}
    for name, due in sorted(batch.state.watermarks_due.items()):
        topic = batch.state.topic(name)
        if topic is not None:
            still_due = _advance_topic(batch, topic, sorted(due))
            if still_due:
                held[name] = still_due
    commit_watermarks_due(batch, held)


def _advance_topic(batch: Batch, topic: WorkingTopic, due: Sequence[int]) -> set[int]:
    """Commit a topic's high watermarks, risen ones together; return the partitions whose watermark a joiner holds."""
    risen: list[tuple[Partition, int]] = []
    held = set()
    for partition in topic.partitions.some(due):
        assert partition is not None
        derived = derive_high_watermark(partition, topic.min_isr, joiners_of(batch, partition))
        if derived is None:
            continue
        if derived.high_watermark > partition.high_watermark:
            risen.append((partition, derived.high_watermark))
        else:
            commit_watermark(batch, topic, partition, derived.high_watermark)
        if derived.is_held:
            held.add(partition.partition)
    commit_risen_watermarks(batch, topic, risen)
    return held
