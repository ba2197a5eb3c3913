"""A log whose disk has errors: callers are refused, the broker hears of it, and a retry finds the log true."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from brokers.mock.log import epochs
from brokers.mock.log.epochs import Entry
from brokers.mock.log.log import Log, LogConfig
from brokers.wire.batch_header import Batch, batch_at
from brokers.wire.errors import ErrorCode, RefusedError
from tests.support.batches import batch


def written(path: Path, lost: list[int], count: int = 4, **config: int) -> Log:
    """Make a log of one producer's batches, half of them in leader epoch 1, half in 2."""

    def note(error: OSError) -> None:
        assert error.errno is not None
        lost.append(error.errno)

    log = Log(path, LogConfig(**config), False, note)
    for number in range(count):
        log.append_as_leader(numbered(number), 1 if number < count // 2 else 2)
    return log


def numbered(sequence: int) -> bytes:
    return batch(b"%d" % sequence, producer_id=7, producer_epoch=0, sequence=sequence)


def header(records: bytes) -> Batch:
    found = batch_at(records, 0)
    assert found is not None
    return found


def failing(number: int) -> Callable[..., Any]:
    def fail(*_: Any) -> Any:
        raise OSError(number, os.strerror(number))

    return fail


def refused(ask: Callable[[], Any]) -> None:
    with pytest.raises(RefusedError) as error:
        ask()
    assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR


def test_a_producers_batch_is_new_once_it_was_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise it would be acknowledged as a repeated one, although the log holds another record at its offset."""
    lost: list[int] = []
    log = written(tmp_path, lost)
    with monkeypatch.context() as patched:
        patched.setattr(epochs, "replace", failing(errno.EMFILE))
        refused(lambda: log.truncate_to(1))
    log.truncate_to(1)
    assert log.log_end_offset == 1
    assert [log.producers.check(header(numbered(number))) is None for number in (0, 1)] == [False, True]
    assert lost == [errno.EMFILE]


def test_epochs_that_could_not_be_written_are_written_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = written(tmp_path, [])
    with monkeypatch.context() as patched:
        patched.setattr(epochs, "replace", failing(errno.EMFILE))
        refused(lambda: log.truncate_to(2))
    # These are of the latest epoch, which needs no new entry.
    log.append_as_leader(numbered(2), 1)
    log.append_as_leader(numbered(3), 1)
    log.close()
    assert Log(tmp_path, LogConfig(), False).epochs.entries == (Entry(1, 0),)


@pytest.mark.parametrize("as_leader", [True, False])
def test_nothing_is_appended_whose_epoch_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, as_leader: bool
) -> None:
    lost: list[int] = []
    source = written(tmp_path / "source", [])
    source.append_as_leader(numbered(4), 3)
    log = written(tmp_path / "log", lost)

    def append() -> None:
        if as_leader:
            log.append_as_leader(numbered(4), 3)
        else:
            log.append_as_follower(source.read(4, 1, 5))

    with monkeypatch.context() as patched:
        patched.setattr(epochs, "replace", failing(errno.ENOSPC))
        refused(append)
    assert lost == [errno.ENOSPC]
    assert log.log_end_offset == 4
    append()
    assert log.log_end_offset == 5
    assert log.producers.check(header(numbered(4))) is not None


def test_a_log_that_cannot_be_read_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lost: list[int] = []
    log = written(tmp_path, lost)
    with monkeypatch.context() as patched:
        patched.setattr(os, "pread", failing(errno.EIO))
        refused(lambda: log.read(0, 1, 4))
        refused(lambda: log.find_timestamp(1_000, 4))
        refused(lambda: log.truncate_to(1))
    assert lost == [errno.EIO] * 3


def test_a_log_that_could_not_restart_elsewhere_does_so_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = written(tmp_path, [], segment_bytes=1)
    before = log.read(0, 1 << 20, 4)
    with monkeypatch.context() as patched:
        patched.setattr(os, "open", failing(errno.EMFILE))
        refused(lambda: log.restart_at(100))
    assert log.read(0, 1 << 20, 4) == before
    log.restart_at(100)
    assert (log.log_start_offset, log.log_end_offset, log.epochs.entries) == (100, 100, ())
    log.append_as_leader(numbered(0), 5)
    log.close()
    assert Log(tmp_path, LogConfig(), False).epochs.entries == (Entry(5, 100),)


@pytest.mark.parametrize("offset", [0, 2])
def test_a_log_restarts_where_one_of_its_segments_begins(tmp_path: Path, offset: int) -> None:
    log = written(tmp_path, [], segment_bytes=1)
    log.restart_at(offset)
    assert (log.log_start_offset, log.log_end_offset) == (offset, offset)
    log.append_as_leader(numbered(0), 5)
    assert [path.stem for path in tmp_path.glob("*.log")] == [f"{offset:020d}"]
    log.close()
    again = Log(tmp_path, LogConfig(), False)
    assert (again.log_start_offset, again.log_end_offset) == (offset, offset + 1)
