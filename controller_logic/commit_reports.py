"""Commit what replicas report of themselves: where their logs end, what follows for high watermarks, and directories.

No reassignment waits for any of this, and no epoch rises. So nothing is settled, and only requests are counted, because
they are the backlog. Only a high watermark leads to a decision:

    report ─► log end, kept ─► the partition is due ─► next tick ─► watermark ─► check ─► record ─► kept
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from controller_logic.batch import Batch
from controller_logic.working_topic import WorkingTopic
from state.directories import kept, moved_to
from state.ids import NO_EPOCH
from state.invariants import broken_watermark
from state.partition import Partition, ReportedLog


def commit_log_end(batch: Batch, topic: WorkingTopic, after: Partition) -> None:
    """Commit the log ends that replicas reported. No decision follows until the next tick derives watermarks."""
    topic.put(after)


def commit_log_ends(batch: Batch, topic: WorkingTopic, after: Mapping[int, Partition]) -> None:
    """Commit the log ends of many replicas, and derive their partitions' high watermarks at the next tick."""
    topic.put_reports(after)
    commit_watermarks_due_in(batch, topic, after)


def commit_watermark_due(batch: Batch, topic: WorkingTopic, partition: Partition) -> None:
    """Derive a partition's high watermark at the next tick."""
    commit_watermarks_due_in(batch, topic, (partition.partition,))


def commit_watermarks_due_in(batch: Batch, topic: WorkingTopic, partitions: Iterable[int]) -> None:
    """Derive the high watermarks of some partitions of a topic at the next tick."""
    batch.state.watermarks_due[topic.topic].update(partitions)


def commit_watermarks_due(batch: Batch, due: Mapping[str, set[int]]) -> None:
    """Leave only ``due`` to be derived at the next tick."""
    batch.state.watermarks_due = defaultdict(set, due)


def commit_watermark(batch: Batch, topic: WorkingTopic, before: Partition, high_watermark: int) -> None:
    """Commit a partition's high watermark in its current leader epoch."""
    # Apply
    after = replace(before, high_watermark=high_watermark, high_watermark_epoch=before.leader_epoch)
    # Check
    broken = broken_watermark(before, after)
    if broken:
        batch.recorder.say_withheld(topic, before, broken)
        return
    # Record. A new leader may begin below the former high watermark, so reaching that offset again is a decision too.
    is_regained = before.high_watermark_epoch == NO_EPOCH and before.high_watermark > 0
    if high_watermark != before.high_watermark or is_regained:
        batch.recorder.say_high_watermarks(topic, (after,))
    elif before.high_watermark_epoch == before.leader_epoch:
        return
    topic.put(after)


def commit_risen_watermarks(batch: Batch, topic: WorkingTopic, risen: Iterable[tuple[Partition, int]]) -> None:
    """Commit high watermarks that are higher than before, each with its partition, as ``commit_watermark`` does.

    None of them can break an invariant, and each is a decision.
    """
    after = {
        before.partition: replace(before, high_watermark=end, high_watermark_epoch=before.leader_epoch)
        for before, end in risen
    }
    if after:
        batch.recorder.say_high_watermarks(topic, after.values())
        topic.put_reports(after)


def commit_request_epochs(batch: Batch, topic: WorkingTopic, before: Partition, after: Partition, place: int) -> None:
    """Commit which requests the replica at ``place`` has completed. Only the backlog depends on it."""
    batch.state.totals.change_backlog_at(before, after, place)
    topic.put(after)


def commit_lost_logs(topic: WorkingTopic, before: Partition, lost_logs: tuple[int, ...]) -> Partition:
    """Commit which replicas of a leaderless partition have lost their logs. No decision is recorded."""
    after = replace(before, lost_logs=lost_logs)
    topic.put(after)
    return after


def commit_reported_log(topic: WorkingTopic, before: Partition, log: ReportedLog) -> Partition:
    """Commit the log of a replica that follows no leader, in place of what was reported of it. No decision follows."""
    others = tuple([one for one in before.reported_logs if one.broker != log.broker])
    after = replace(before, reported_logs=(*others, log))
    topic.put(after)
    return after


def commit_min_isr_read(topic: WorkingTopic, before: Partition, min_isr: int) -> Partition:
    """Commit the least min.insync.replicas that a partition's leader may still commit by. No decision is recorded."""
    after = replace(before, min_isr_read=min_isr)
    topic.put(after)
    return after


def commit_known_directory(topic: WorkingTopic, before: Partition, broker: int, directory: str) -> Partition:
    """Commit the directory of a replica, which brokers know already. No decision is recorded."""
    after = replace(before, directories=kept(moved_to(before, broker, directory)))
    topic.put(after)
    return after
