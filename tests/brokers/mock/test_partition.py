"""One replica: its roles, its fences, where its log diverges, and the ISR."""

from pathlib import Path

import msgspec
import pytest

from brokers.mock.log.log import Log, LogConfig
from brokers.mock.replicas.isr import may_join, out_of_sync
from brokers.mock.replicas.partition import Partition, Role
from brokers.mock.replicas.truncation import epoch_to_ask, truncation
from brokers.wire.errors import ErrorCode, RefusedError
from state.decisions import LeaderAndIsr
from state.events import TopicPartition
from state.reason import Reason
from tests.support.batches import batch

PLACE = TopicPartition("t", 0)
BASE = LeaderAndIsr(
    seq=1,
    controller_epoch=1,
    time_ms=0,
    reason=Reason.TOPIC_CREATED,
    topic="t",
    topic_id="id",
    partition=0,
    leader=1,
    leader_epoch=0,
    isr=(1, 2, 3),
    partition_epoch=0,
    replicas=(1, 2, 3),
    adding_replicas=(),
    removing_replicas=(),
    leader_recovery_state="RECOVERED",
    is_new=True,
    unclean=False,
    to=(1, 2, 3),
)


def decided_leader(
    leader: int, leader_epoch: int, partition_epoch: int | None = None, **fields: object
) -> LeaderAndIsr:
    epoch = leader_epoch if partition_epoch is None else partition_epoch
    return msgspec.structs.replace(BASE, leader=leader, leader_epoch=leader_epoch, partition_epoch=epoch, **fields)


def replica(path: Path, broker: int = 1) -> Partition:
    return Partition(PLACE, "id", broker, Log(path / str(broker), LogConfig(), clean=False))


def appended(partition: Partition, *epochs: int) -> Partition:
    """Return a log with one record in each of ``epochs``."""
    for epoch in epochs:
        partition.log.append_as_leader(batch(b"%d-%d" % (partition.broker, epoch)), epoch)
    return partition


def epochs_of(partition: Partition) -> list[int]:
    entries = [*partition.log.epochs.entries, None]
    ends = [e.start_offset for e in entries[1:] if e is not None] + [partition.log.log_end_offset]
    return [e.epoch for e, end in zip(entries, ends, strict=False) if e is not None for _ in range(e.start_offset, end)]


def test_older_decisions_are_recognized(tmp_path: Path) -> None:
    partition = replica(tmp_path)
    partition.make_leader(decided_leader(1, 4, 7), 0, 0)
    assert partition.supersedes(decided_leader(2, 3, 9))
    assert partition.supersedes(decided_leader(1, 4, 6))
    assert not partition.supersedes(decided_leader(1, 4, 7))
    assert not partition.supersedes(decided_leader(2, 5, 8))


def test_a_term_ends_when_leading_ends(tmp_path: Path) -> None:
    partition = replica(tmp_path)
    partition.make_leader(decided_leader(1, 0), 0, 0)
    first = partition.term
    partition.make_leader(decided_leader(1, 1), 0, 0)
    assert partition.term == first
    partition.make_follower(decided_leader(2, 2), 0)
    partition.make_leader(decided_leader(1, 3), 0, 0)
    assert partition.term > first
    partition.stop()
    assert partition.role is Role.none


def test_only_the_leader_appends(tmp_path: Path) -> None:
    partition = replica(tmp_path)
    partition.make_follower(decided_leader(2, 0), 0)
    with pytest.raises(RefusedError) as error:
        partition.append_as_leader(batch(b"x"))
    assert error.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_requests_of_another_epoch_are_fenced(tmp_path: Path) -> None:
    partition = replica(tmp_path)
    partition.make_leader(decided_leader(1, 4), 0, 0)
    partition.check_epoch(-1)
    partition.check_epoch(4)
    with pytest.raises(RefusedError, match="FENCED_LEADER_EPOCH"):
        partition.check_epoch(3)
    with pytest.raises(RefusedError, match="UNKNOWN_LEADER_EPOCH"):
        partition.check_epoch(5)


def test_the_high_watermark_is_the_decided_one_of_this_epoch(tmp_path: Path) -> None:
    partition = appended(replica(tmp_path), 0, 0, 0)
    partition.make_leader(decided_leader(1, 2), 1, 0)
    assert partition.high_watermark == 1
    partition.set_high_watermark(1, 3)
    assert partition.high_watermark == 1
    partition.set_high_watermark(2, 2)
    assert partition.high_watermark == 2
    partition.set_high_watermark(2, 9)
    assert partition.high_watermark == 3


def test_an_unclean_leader_caps_the_high_watermark_at_its_log_end(tmp_path: Path) -> None:
    partition = appended(replica(tmp_path), 0)
    partition.make_leader(decided_leader(1, 2, unclean=True), 5, 0)
    appended(partition, 2, 2, 2)
    assert partition.high_watermark == 1


def test_a_follower_reports_in_an_epoch_once_its_log_agrees(tmp_path: Path) -> None:
    partition = replica(tmp_path)
    assert partition.reporting_epoch is None
    partition.make_follower(decided_leader(2, 3), 0)
    assert partition.reporting_epoch is None
    partition.truncated(3)
    assert partition.reporting_epoch == 3
    partition.make_follower(decided_leader(2, 4), 0)
    assert partition.reporting_epoch is None
    partition.make_leader(decided_leader(1, 5), 0, 0)
    assert partition.reporting_epoch == 5


def test_a_truncated_follower_catches_up_to_its_leaders_high_watermark(tmp_path: Path) -> None:
    """A restarted follower that lost the end of its log waits for no further decision."""
    leader, follower = appended(replica(tmp_path, 2), 0, 0, 0), replica(tmp_path)
    follower.make_follower(decided_leader(2, 3), 3)
    assert follower.truncate(3, 0)
    follower.append_as_follower(3, 0, leader.log.read(0, 10_000, 3))
    follower.follow_high_watermark(2, 3)
    assert follower.high_watermark == 0, "of another epoch"
    follower.follow_high_watermark(3, 2)
    assert follower.high_watermark == 2
    follower.follow_high_watermark(3, 1)
    assert follower.high_watermark == 2, "it does not go back"


def test_responses_to_requests_of_another_epoch_are_dropped(tmp_path: Path) -> None:
    leader, follower = appended(replica(tmp_path, 2), 0, 0), replica(tmp_path)
    follower.make_follower(decided_leader(2, 3), 0)
    records = leader.log.read(0, 1, 2)
    assert not follower.append_as_follower(2, 0, records)
    assert not follower.append_as_follower(3, 1, records)
    assert not follower.truncate(2, 0)
    assert not follower.restart_at(2, 7)
    assert follower.append_as_follower(3, 0, records)
    assert follower.log.log_end_offset == 1
    assert follower.restart_at(3, 7)
    assert (follower.log.log_start_offset, follower.log.log_end_offset) == (7, 7)


@pytest.mark.parametrize(
    ("leader", "follower", "agreed"),
    [
        ([0, 0, 0], [0, 0], [0, 0]),
        ([0, 0], [0, 0, 0], [0, 0]),
        ([0, 0, 2], [0, 0, 1], [0, 0]),
        ([0, 0, 2, 2], [0, 0, 1, 1, 1], [0, 0]),
        # KIP-279: the leader does not know the follower's newest epoch, and the epoch below it has another length.
        ([0, 1, 1, 4], [0, 1, 2, 3], [0, 1]),
        ([0, 0, 0, 5], [0, 1, 2, 3], [0]),
        ([4], [1, 2, 3], []),
        ([0, 2], [0], [0]),
        ([0], [], []),
    ],
)
def test_logs_are_truncated_to_where_they_diverge(
    tmp_path: Path, leader: list[int], follower: list[int], agreed: list[int]
) -> None:
    leading, following = replica(tmp_path, 1), replica(tmp_path, 2)
    _write(leading, leader)
    _write(following, follower)
    leading.make_leader(decided_leader(1, 9), 0, 0)
    following.make_follower(decided_leader(1, 9), 0)
    for _round in range(len(follower) + 1):
        epoch = epoch_to_ask(following.log)
        if epoch is None:
            break
        found = truncation(following.log, 0, leading.log.end_offset_for_epoch(epoch))
        assert following.truncate(9, found.offset)
        if found.complete:
            break
    assert epochs_of(following) == agreed


def _write(partition: Partition, epochs: list[int]) -> None:
    """Write records whose bytes depend on epoch and offset alone, as replication makes them."""
    for offset, epoch in enumerate(epochs):
        partition.log.append_as_leader(batch(b"%d-%d" % (epoch, offset)), epoch)


def test_a_lagging_follower_must_leave(tmp_path: Path) -> None:
    partition = appended(replica(tmp_path), 0, 0)
    partition.make_leader(decided_leader(1, 0), 0, now_ms=1_000)
    partition.followers[2].fetched(2, 2, -1, 2_000)
    partition.followers[3].fetched(0, 2, -1, 2_000)
    assert out_of_sync(partition, 3_900, lag_max_ms=3_000) == ()
    assert out_of_sync(partition, 4_001, lag_max_ms=3_000) == (3,)
    assert out_of_sync(partition, 99_000, lag_max_ms=3_000) == (3,), "a follower that has everything may be silent"


def test_a_follower_that_keeps_pace_stays(tmp_path: Path) -> None:
    """It never fetches from the log end, but each time from where the end was at its previous fetch."""
    partition = replica(tmp_path)
    partition.make_leader(decided_leader(1, 0), 0, now_ms=0)
    for second in range(1, 20):
        appended(partition, 0)
        partition.followers[2].fetched(second - 1, second, -1, 1_000 * second)
    assert out_of_sync(partition, 20_000, lag_max_ms=3_000) == (3,)


def test_a_follower_that_has_caught_up_may_join(tmp_path: Path) -> None:
    partition = appended(replica(tmp_path), 0, 0, 0, 0)
    partition.make_leader(decided_leader(1, 2, isr=(1, 3)), 3, 0)
    appended(partition, 2, 2)

    def joins(end: int, reported: int) -> bool:
        partition.followers[2].fetched(end, 6, -1, 0)
        return may_join(partition, 2, reported)

    assert not may_join(partition, 3, 0), "a member already"
    assert not may_join(partition, 9, 0), "a stranger"
    assert not joins(3, 0), "the high watermark, but not the start of the epoch"
    assert joins(4, 4)
    assert not joins(4, 5), "the engine may have decided 5"
    assert joins(5, 5)
    partition.set_high_watermark(2, 6)
    assert not joins(5, 5)


def test_a_new_epoch_knows_nothing_of_followers(tmp_path: Path) -> None:
    partition = replica(tmp_path)
    partition.make_leader(decided_leader(1, 0), 0, 0)
    partition.followers[2].fetched(0, 0, 5, 10)
    partition.make_leader(decided_leader(1, 0, 1, isr=(1, 2)), 0, 20)
    assert partition.followers[2].log_end_offset == 0
    partition.make_leader(decided_leader(1, 1, 2, isr=(1, 2)), 0, 30)
    assert partition.followers[2].log_end_offset == -1
    partition.make_leader(decided_leader(1, 1, 3, isr=(1,), replicas=(1, 4)), 0, 40)
    assert set(partition.followers) == {4}
