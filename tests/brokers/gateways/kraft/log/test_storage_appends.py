"""Appends leave a log that the next start can read, and no needless notes."""

import asyncio
import errno
import os
from pathlib import Path
from typing import Any

import pytest

from brokers.gateways.kraft.log import ends
from brokers.gateways.kraft.log.errors import StorageError
from brokers.gateways.kraft.log.storage import Storage
from tests.brokers.gateways.kraft.storages import BEGINNING, append, follow, following, opened, topic, whole
from tests.support.decided_bus import DecidedBus

ENDS = f"{0:020d}.ends"


@pytest.fixture
def decided(decided: DecidedBus) -> DecidedBus:
    decided.take(BEGINNING)
    return decided


class FullDisk:
    """A disk that fails from the ``nth`` call on; a failed write has written half."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str, nth: int) -> None:
        self._left = nth
        self._call = getattr(os, name)
        self._name = name
        monkeypatch.setattr(os, name, self)

    def __call__(self, descriptor: int, *data: Any) -> Any:
        self._left -= 1
        if self._left > 0:
            return self._call(descriptor, *data)
        if self._left == 0 and data:
            self._call(descriptor, bytes(data[0])[: len(data[0]) // 2])
        elif not data:
            # Data may be on the disk even if the call that forces it there failed.
            self._call(descriptor)
        raise OSError(errno.ENOSPC, "no space")


@pytest.mark.parametrize(("name", "nth"), [("write", 1), ("fsync", 1), ("write", 2), ("fsync", 2)])
def test_a_log_can_be_read_after_an_append_that_failed(
    decided: DecidedBus, tmp_path: Path, name: str, nth: int
) -> None:
    # A clean close would note that the last event gave no records.
    decided.take([b"no event"])
    storage = opened(tmp_path / "log", decided.bus)
    follow(storage, decided.bus)
    end = storage.end_offset
    decided.take([topic("t"), b"no event"])
    with pytest.MonkeyPatch.context() as patch:
        FullDisk(patch, name, nth)
        with pytest.raises(OSError, match="no space"):
            follow(storage, decided.bus, (2,))
        assert storage.end_offset == end
    # The disk has room again by the time that the gateway ends.
    storage.close()
    again, complete = (opened(tmp_path / one, decided.bus) for one in ("log", "complete"))
    follow(again, decided.bus)
    follow(complete, decided.bus)
    assert whole(again) == whole(complete)
    again.close()
    complete.close()


def test_decreasing_log_ends_are_damage(decided: DecidedBus, tmp_path: Path) -> None:
    storage = opened(tmp_path / "log", decided.bus)
    follow(storage, decided.bus)
    storage.close()
    path = tmp_path / "log" / ENDS
    held = path.read_bytes()
    path.write_bytes(held + held[ends.SIZE : 2 * ends.SIZE])
    with pytest.raises(StorageError, match="it goes back at offset"):
        Storage(tmp_path / "log")


def test_a_waiter_is_woken_only_by_new_records(decided: DecidedBus, tmp_path: Path) -> None:
    decided.take([b"no event", topic("t")])

    async def story() -> list[bool]:
        storage = opened(tmp_path / "log", decided.bus)
        first, *_, nothing, created = list(following(decided.bus, 0))
        woken = []
        append(storage, storage.prepared([first]))
        for decisions in (nothing, created):
            waiting = asyncio.ensure_future(storage.until_appended(60_000))
            await asyncio.sleep(0)
            append(storage, storage.prepared([decisions]))
            for _ in range(5):
                await asyncio.sleep(0)
            woken.append(waiting.done())
            waiting.cancel()
        storage.close()
        return woken

    assert asyncio.run(story()) == [False, True]


def test_the_next_start_finds_records_that_were_written_and_never_made_readable(
    decided: DecidedBus, tmp_path: Path
) -> None:
    decided.take([topic("t"), b"no event"])
    storage, complete = (opened(tmp_path / one, decided.bus) for one in ("log", "complete"))
    events = list(following(decided.bus, 0))
    end = storage.end_offset
    storage.write([storage.prepared(events)])
    assert (storage.end_offset, storage.read(end, 1_000)) == (end, b"")
    # The gateway is stopped before its loop goes on.
    storage.close()
    again = opened(tmp_path / "log", decided.bus)
    follow(complete, decided.bus)
    assert (whole(again), again.decided_seq) == (whole(complete), complete.decided_seq)
    again.close()
    complete.close()
