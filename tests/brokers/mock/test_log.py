"""The log on disk: append, read, roll, recover, truncate."""

import os
from pathlib import Path

import pytest

from brokers.mock.log.epochs import Entry
from brokers.mock.log.log import Log, LogConfig
from brokers.wire.batch_header import batches_in
from brokers.wire.errors import ErrorCode, RefusedError
from tests.support.batches import batch

SMALL_SEGMENTS = LogConfig(segment_bytes=250)


def opened(path: Path, config: LogConfig = LogConfig(), *, clean: bool = False) -> Log:  # noqa: B008
    return Log(path, config, clean)


def filled(path: Path, config: LogConfig = LogConfig(), batches: int = 10) -> Log:  # noqa: B008
    """Make a log of batches of two records, the first half in leader epoch 0, the rest in 3."""
    log = opened(path, config)
    for number in range(batches):
        log.append_as_leader(batch(b"a%d" % number, b"b%d" % number), 0 if number < batches // 2 else 3)
    return log


def everything(log: Log) -> bytes:
    data, offset = b"", log.log_start_offset
    while offset < log.log_end_offset:
        data += log.read(offset, 1 << 20, log.log_end_offset)
        offset = [b.next_offset for _, b in batches_in(data)][-1]
    return data


def newest_segment(log: Log) -> Path:
    return max(log.directory.glob("*.log"))


def refused(code: ErrorCode, log: Log, records: bytes | None) -> None:
    with pytest.raises(RefusedError) as error:
        log.append_as_leader(records, 0)
    assert error.value.code == code


def test_offsets_and_epochs_are_stamped_outside_the_crc(tmp_path: Path) -> None:
    log = filled(tmp_path)
    headers = [b for _, b in batches_in(everything(log))]
    assert [b.base_offset for b in headers] == list(range(0, 20, 2))
    assert [b.leader_epoch for b in headers] == [0] * 5 + [3] * 5
    assert opened(tmp_path).log_end_offset == 20  # every CRC still fits


@pytest.mark.parametrize("config", [LogConfig(), SMALL_SEGMENTS])
def test_a_log_opens_as_it_was(tmp_path: Path, config: LogConfig) -> None:
    log = filled(tmp_path, config)
    before, epochs = everything(log), log.epochs.entries
    log.close()
    again = opened(tmp_path, config)
    assert everything(again) == before
    assert again.log_end_offset == 20
    assert again.epochs.entries == epochs == (Entry(0, 0), Entry(3, 10))


def test_segments_roll_by_size(tmp_path: Path) -> None:
    log = filled(tmp_path, SMALL_SEGMENTS)
    sizes = [path.stat().st_size for path in sorted(tmp_path.glob("*.log"))]
    assert len(sizes) > 2
    assert all(0 < size <= 250 for size in sizes)
    assert log.read(7, 1, 20) == log.read(6, 1, 20) != b""


@pytest.mark.parametrize("cut", [1, 30, 61, 80])
def test_a_torn_tail_is_cut_off(tmp_path: Path, cut: int) -> None:
    log = filled(tmp_path)
    path = newest_segment(log)
    log.close()
    os.truncate(path, path.stat().st_size - cut)
    again = opened(tmp_path)
    assert again.log_end_offset in (16, 18)
    assert path.stat().st_size == len(everything(again))


def test_a_broken_batch_ends_the_log(tmp_path: Path) -> None:
    log = filled(tmp_path)
    path = newest_segment(log)
    size = path.stat().st_size // 10
    log.close()
    with path.open("r+b") as file:
        file.seek(7 * size + 70)
        file.write(b"\xff")
    again = opened(tmp_path)
    assert again.log_end_offset == 14
    again.append_as_leader(batch(b"x"), 4)
    assert again.log_end_offset == 15


def test_the_epochs_are_found_again_without_their_file(tmp_path: Path) -> None:
    filled(tmp_path).close()
    (tmp_path / "leader-epoch-checkpoint").unlink()
    assert opened(tmp_path).epochs.entries == (Entry(0, 0), Entry(3, 10))


def test_an_epoch_ends_where_the_next_one_begins(tmp_path: Path) -> None:
    log = filled(tmp_path)
    assert log.end_offset_for_epoch(0) == (0, 10)
    assert log.end_offset_for_epoch(2) == (0, 10)
    assert log.end_offset_for_epoch(3) == (3, 20)
    assert log.end_offset_for_epoch(4) == (-1, -1)
    assert log.end_offset_for_epoch(-1) == (-1, -1)
    log.begin_epoch(7)
    assert log.end_offset_for_epoch(3) == (3, 20)
    assert log.end_offset_for_epoch(7) == (7, 20)


@pytest.mark.parametrize("config", [LogConfig(), SMALL_SEGMENTS])
@pytest.mark.parametrize(("offset", "end"), [(20, 20), (19, 18), (12, 12), (10, 10), (3, 2), (0, 0)])
def test_a_log_is_truncated_at_an_offset(tmp_path: Path, config: LogConfig, offset: int, end: int) -> None:
    log = filled(tmp_path, config)
    kept = everything(log)
    log.truncate_to(offset)
    assert log.log_end_offset == end
    assert kept.startswith(everything(log))
    assert log.epochs.latest == (3 if end > 10 else 0 if end else -1)
    log.append_as_leader(batch(b"new"), 9)
    log.close()
    assert opened(tmp_path, config).log_end_offset == end + 1


def test_an_epoch_without_records_goes_with_truncation(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.begin_epoch(8)
    log.truncate_to(20)
    assert log.epochs.latest == 3


def test_segments_after_a_gap_are_dropped(tmp_path: Path) -> None:
    log = filled(tmp_path, SMALL_SEGMENTS)
    log.close()
    first, second, *others = sorted(tmp_path.glob("*.log"))
    assert others
    second.unlink()
    again = opened(tmp_path, SMALL_SEGMENTS)
    assert again.log_end_offset == int(second.stem)
    assert list(tmp_path.glob("*.log")) == [first]


def test_an_epoch_without_records_is_forgotten_at_a_restart(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.begin_epoch(9)
    log.close()
    assert opened(tmp_path).epochs.entries == (Entry(0, 0), Entry(3, 10))


def test_a_log_restarts_at_another_offset(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.restart_at(500)
    assert (log.log_start_offset, log.log_end_offset) == (500, 500)
    log.append_as_leader(batch(b"x"), 4)
    log.close()
    again = opened(tmp_path)
    assert (again.log_start_offset, again.log_end_offset) == (500, 501)
    with pytest.raises(RefusedError, match="OFFSET_OUT_OF_RANGE"):
        again.read(499, 100, 501)


def test_reads_are_bounded_but_never_empty(tmp_path: Path) -> None:
    log = filled(tmp_path)
    size = len(log.read(0, 1, 20))
    assert [b.base_offset for _, b in batches_in(log.read(0, 3 * size, 20))] == [0, 2, 4]
    assert [b.base_offset for _, b in batches_in(log.read(4, 1 << 20, 8))] == [4, 6]
    assert log.read(8, 1 << 20, 8) == b""
    assert log.read(20, 1 << 20, 20) == b""


def test_a_follower_takes_only_what_follows(tmp_path: Path) -> None:
    leader, follower = filled(tmp_path / "leader"), opened(tmp_path / "follower")
    follower.append_as_follower(everything(leader))
    assert everything(follower) == everything(leader)
    assert follower.epochs.entries == leader.epochs.entries
    with pytest.raises(RefusedError, match="OFFSET_OUT_OF_RANGE"):
        follower.append_as_follower(leader.read(10, 1, 20))
    broken = bytearray(leader.read(18, 1, 20))
    broken[70] ^= 1
    with pytest.raises(RefusedError, match="CORRUPT_MESSAGE"):
        follower.append_as_follower(bytes(broken))


def test_invalid_batches_of_producers_are_refused(tmp_path: Path) -> None:
    log = opened(tmp_path, LogConfig(max_message_bytes=200))
    good = batch(b"x")
    corrupt = bytearray(good)
    corrupt[-1] ^= 1
    old = bytearray(good)
    old[16] = 1
    refused(ErrorCode.INVALID_RECORD, log, None)
    refused(ErrorCode.CORRUPT_MESSAGE, log, bytes(corrupt))
    refused(ErrorCode.CORRUPT_MESSAGE, log, good[:-1])
    refused(ErrorCode.CORRUPT_MESSAGE, log, good[:20])
    refused(ErrorCode.INVALID_RECORD, log, good + good)
    refused(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, log, bytes(old))
    refused(ErrorCode.MESSAGE_TOO_LARGE, log, batch(b"x" * 500))
    assert log.log_end_offset == 0


def test_compressed_batches_are_stored_as_they_are(tmp_path: Path) -> None:
    log = opened(tmp_path)
    compressed = batch(b"x" * 100, b"y" * 100, compression=1)
    log.append_as_leader(compressed, 5)
    stored = log.read(0, 1 << 20, 2)
    assert stored[16:] == compressed[16:]


def test_offsets_are_found_by_time(tmp_path: Path) -> None:
    log = opened(tmp_path, SMALL_SEGMENTS)
    for number in range(10):
        log.append_as_leader(batch(b"a", b"b", timestamp=1_000 * number), 2)
    assert log.find_timestamp(0, 20) == (0, 0, 2)
    assert log.find_timestamp(3_001, 20) == (3_001, 7, 2)
    assert log.find_timestamp(3_002, 20) == (4_000, 8, 2)
    assert log.find_timestamp(3_002, 8) is None
    assert log.find_timestamp(99_999, 20) is None
