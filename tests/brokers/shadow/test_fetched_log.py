"""The reader's place in the log: what it hands on, what it holds back, and what it drops."""

import pytest

from brokers.shadow import fetched_log
from brokers.shadow.controller_line import Position, SnapshotId
from brokers.shadow.fetched_log import FetchedLog, LogCutError
from brokers.wire.messages import WireError
from brokers.wire.record_batch import encode_batch


def batch(offset: int, epoch: int = 1, count: int = 1) -> bytes:
    return encode_batch(offset, epoch, 1_000, [(None, b"record")] * count)


def offsets(log: FetchedLog, high_watermark: int, *batches: bytes) -> list[int]:
    """Take an answer, and return the first offset of each batch that is handed on."""
    answer = {"Records": b"".join(batches), "HighWatermark": high_watermark}
    return [one.base_offset for one in log.take(answer)]


def test_batches_are_held_back_until_the_high_watermark_passes_them() -> None:
    log = FetchedLog(Position(0, 0))
    assert offsets(log, 0, batch(0), batch(1, count=3)) == []
    assert (log.position, log.committed) == (Position(4, 1), Position(0, 0))
    assert offsets(log, 3) == [0]
    assert offsets(log, 2) == [], "a leader's high watermark may be lower at first"
    assert offsets(log, 4) == [1]
    assert log.committed == Position(4, 1) and not log.holds


def test_what_another_leader_does_not_have_is_dropped() -> None:
    log = FetchedLog(Position(0, 0))
    assert offsets(log, 1, batch(0), batch(1), batch(2)) == [0]
    log.part(SnapshotId(2, 1))
    assert log.position == Position(2, 1)
    assert offsets(log, 4, batch(2, 2), batch(3, 2)) == [1, 2, 3]


def test_batches_of_an_epoch_that_another_leader_does_not_know_are_dropped() -> None:
    log = FetchedLog(Position(0, 0))
    assert offsets(log, 1, batch(0), batch(1), batch(2, 2)) == [0]
    log.part(SnapshotId(3, 1))
    assert log.position == Position(2, 1)


@pytest.mark.parametrize("told", [SnapshotId(1, 1), SnapshotId(9, 1)])
def test_a_log_without_what_was_committed_is_refused(told: SnapshotId) -> None:
    log = FetchedLog(Position(0, 0))
    assert offsets(log, 3, batch(0), batch(1), batch(2)) == [0, 1, 2]
    with pytest.raises(LogCutError, match="before offset 3, of epoch 1, was committed"):
        log.part(told)


def test_a_batch_is_never_taken_twice() -> None:
    log = FetchedLog(Position(1, 1))
    assert offsets(log, 9, batch(0), batch(1)) == [1]
    assert offsets(log, 9, batch(0), batch(1), batch(2)) == [2]


def test_a_batch_that_is_cut_off_is_left_for_the_next_answer() -> None:
    log = FetchedLog(Position(0, 0))
    assert offsets(log, 9, batch(0), batch(1)[:-1]) == [0]
    assert log.position == Position(1, 1)
    with pytest.raises(WireError, match="without a whole batch"):
        offsets(log, 9, batch(1)[:-1])


def test_missing_and_damaged_batches_are_no_answer() -> None:
    log = FetchedLog(Position(0, 0))
    with pytest.raises(WireError, match="a batch at offset 5, where 0 was asked for"):
        offsets(log, 9, batch(5))
    damaged = bytearray(batch(0))
    damaged[-1] ^= 1
    with pytest.raises(WireError, match="CRC"):
        offsets(log, 9, bytes(damaged))


def test_what_is_held_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetched_log, "HELD_BYTES_MAX", 2 * len(batch(0)))
    log = FetchedLog(Position(0, 0))
    assert offsets(log, 0, *map(batch, range(5))) == []
    assert log.position.offset == 2 and log.is_full
    assert offsets(log, 5) == [0, 1]
    assert offsets(log, 5, batch(2)) == [2]
    assert not log.is_full
