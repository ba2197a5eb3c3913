"""A gateway may die in any write, and the disk may keep any part of that write: the log continues undamaged."""

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from brokers.files import write_all
from brokers.gateways.kraft.log import ends, segment, snapshots
from brokers.gateways.kraft.log.directory import locked
from tests.brokers.kraft.storages import follow, opened, story, whole
from tests.support.decided_bus import DecidedBus
from tests.support.descriptors import close_files_of_the_dead

INTERVAL_BYTES = 1_500


class Died(BaseException):
    """The simulated death of the process."""


class Disk:
    """A disk that counts its steps; it does the ``dies_at``th only in part, and none after it."""

    def __init__(self, dies_at: int, part: float) -> None:
        self.steps = 0
        self.is_dead = False
        self.synced: dict[str, int] = {}
        self._dies_at = dies_at
        self._part = part
        self._lock = threading.Lock()

    def step(self, partly: Callable[[], None] = lambda: None) -> None:
        with self._lock:
            self.steps += 1
            if self.steps == self._dies_at and not self.is_dead:
                partly()
                self.is_dead = True
            if self.is_dead:
                raise Died

    def write_all(self, descriptor: int, data: Any) -> None:
        self.step(lambda: write_all(descriptor, bytes(data)[: int(len(data) * self._part)]))
        write_all(descriptor, data)

    def sync(self, descriptor: int) -> None:
        self.step()
        self.synced[os.readlink(f"/proc/self/fd/{descriptor}")] = os.fstat(descriptor).st_size

    def unlink(self, path: Path, missing_ok: bool = False) -> None:
        self.step()
        os.unlink(path) if path.exists() or not missing_ok else None

    def replace(self, path: Path, target: Path) -> Path:
        self.step()
        if str(path) in self.synced:
            self.synced[str(target)] = self.synced.pop(str(path))
        os.replace(path, target)
        return target

    def lose_power(self, directory: Path) -> None:
        """Remove what was written but not forced to disk."""
        for path in directory.iterdir():
            if path.name != ".lock":
                os.truncate(path, min(path.stat().st_size, self.synced.get(str(path), 0)))


@pytest.fixture
def disks(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int, float], Disk]]:
    def install(dies_at: int, part: float) -> Disk:
        disk = Disk(dies_at, part)
        for module in (segment, ends, snapshots):
            monkeypatch.setattr(module, "write_all", disk.write_all)
        monkeypatch.setattr(os, "fsync", disk.sync)
        monkeypatch.setattr(Path, "unlink", lambda path, missing_ok=False: disk.unlink(path, missing_ok))
        monkeypatch.setattr(Path, "replace", lambda path, target: disk.replace(path, target))
        return disk

    yield install
    monkeypatch.undo()


def lived(directory: Path, decided: DecidedBus) -> bytes:
    """Start, follow all decisions event by event, and end, again and again; return the log as it was read."""
    read = b""
    storage = lock = None
    try:
        for through in range(1, decided.bus.decided_seq() + 1, 4):
            lock = locked(directory)
            storage = opened(directory, decided.bus, lock=lock, snapshot_interval_bytes=INTERVAL_BYTES)
            for seq in range(storage.decided_seq + 1, through + 4):
                follow(storage, decided.bus, through=seq)
                read = whole(storage)
            # It closes its files, even if it dies while it does.
            ended, storage = storage, None
            ended.close()
    except Died:
        # A killed process leaves its files as they are, and its lock free.
        if storage is not None:
            storage.abandon()
        if lock is not None:
            lock.close()
        close_files_of_the_dead(f"{directory}/")
    return read


@pytest.mark.parametrize("power_is_lost", [False, True], ids=["killed", "without power"])
@pytest.mark.parametrize("part", [0.0, 0.6, 1.0])
def test_a_gateway_may_be_killed_in_any_write(
    disks: Callable[[int, float], Disk], tmp_path: Path, part: float, power_is_lost: bool
) -> None:
    decided = DecidedBus(tmp_path / "bus.db")
    decided.take(story(4))
    complete = opened(tmp_path / "complete", decided.bus)
    follow(complete, decided.bus)
    expected = whole(complete)
    dies_at, is_dead, trimmed = 1, True, 0
    while is_dead:
        directory = tmp_path / f"{dies_at}"
        disk = disks(dies_at, part)
        read = lived(directory, decided)
        is_dead = disk.is_dead
        if is_dead and power_is_lost:
            disk.lose_power(directory)
        disks(-1, part)
        storage = opened(directory, decided.bus)
        assert read in expected
        assert expected.index(read) + len(read) <= expected.index(whole(storage)) + len(whole(storage))
        follow(storage, decided.bus)
        assert expected.endswith(whole(storage))
        assert storage.image == complete.image
        trimmed += storage.start_offset > 0
        storage.close()
        dies_at += 1
    assert dies_at > 100
    assert trimmed > 10
    complete.close()
    decided.close()
