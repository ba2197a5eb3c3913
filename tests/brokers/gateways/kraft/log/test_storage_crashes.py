"""A gateway may die in any write, and the disk may keep any part of that write: the log continues undamaged.

A gateway lives once. Before each step on its files an image is taken of what a crash at that moment would leave behind.
Then a gateway starts from each image. Many crashes leave the same files, and each of these is looked at once.
"""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from brokers.files import write_all
from brokers.gateways.kraft.log import ends, segment, snapshots
from brokers.gateways.kraft.log.directory import locked
from tests.brokers.gateways.kraft.storages import follow, opened, story, whole
from tests.support.decided_bus import DecidedBus

INTERVAL_BYTES = 1_500
# How much of an interrupted write reaches the disk.
PARTS = (0.0, 0.6, 1.0)


class Image(NamedTuple):
    """What a crash leaves: the files, by name, and the log as brokers had read it."""

    files: tuple[tuple[str, bytes], ...]
    read: bytes


class Disk:
    """The disk under ``directory``. Each step on it first adds to ``images`` what a crash in that step would leave.

    ``loses_power`` says that a crash also takes what was not forced to disk.
    """

    def __init__(self, directory: Path, *, loses_power: bool) -> None:
        self.steps = 0
        self.images: set[Image] = set()
        # The log as brokers have read it until now.
        self.read = b""
        self._directory = directory
        self._loses_power = loses_power
        self._synced: dict[str, int] = {}
        self._lock = threading.Lock()

    def install(self, patch: pytest.MonkeyPatch) -> None:
        for module in (segment, ends, snapshots):
            patch.setattr(module, "write_all", self.write_all)
        patch.setattr(os, "fsync", self.sync)
        patch.setattr(Path, "unlink", lambda path, missing_ok=False: self.unlink(path, missing_ok))
        patch.setattr(Path, "replace", lambda path, target: self.replace(path, target))

    def write_all(self, descriptor: int, data: Any) -> None:
        name = Path(os.readlink(f"/proc/self/fd/{descriptor}")).name
        with self._lock:
            for part in PARTS:
                self._take_image(name, bytes(data)[: int(len(data) * part)])
            write_all(descriptor, data)

    def sync(self, descriptor: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))

        def synced() -> None:
            self._synced[path.name] = os.fstat(descriptor).st_size

        self._do(synced)

    def unlink(self, path: Path, missing_ok: bool) -> None:
        self._do(lambda: os.unlink(path) if path.exists() or not missing_ok else None)

    def replace(self, path: Path, target: Path) -> Path:
        def replaced() -> None:
            if path.name in self._synced:
                self._synced[target.name] = self._synced.pop(path.name)
            os.replace(path, target)

        self._do(replaced)
        return target

    def _do(self, step: Callable[[], object]) -> None:
        with self._lock:
            self._take_image()
            step()

    def _take_image(self, written_to: str = "", written: bytes = b"") -> None:
        """Add the files as they are, with what an interrupted write appended to one of them."""
        self.steps += 1
        files = {path.name: path.read_bytes() for path in self._directory.iterdir()}
        if written_to:
            files[written_to] += written
        if self._loses_power:
            files = {name: data[: self._synced.get(name, 0)] for name, data in files.items()}
        self.images.add(Image(tuple(sorted(files.items())), self.read))


def live(disk: Disk, directory: Path, decided: DecidedBus) -> None:
    """Start, follow all decisions event by event, and end, again and again."""
    for through in range(1, decided.bus.decided_seq() + 1, 4):
        lock = locked(directory)
        storage = opened(directory, decided.bus, lock=lock, snapshot_interval_bytes=INTERVAL_BYTES)
        for seq in range(storage.decided_seq + 1, through + 4):
            follow(storage, decided.bus, through=seq)
            disk.read = whole(storage)
        storage.close()


@pytest.mark.parametrize("loses_power", [False, True], ids=["killed", "without power"])
def test_a_gateway_may_be_killed_in_any_write(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, loses_power: bool
) -> None:
    decided = DecidedBus(tmp_path / "bus.db")
    decided.take(story(4))
    complete = opened(tmp_path / "complete", decided.bus)
    follow(complete, decided.bus)
    expected = whole(complete)
    disk = Disk(tmp_path / "lived", loses_power=loses_power)
    with monkeypatch.context() as patch:
        disk.install(patch)
        live(disk, tmp_path / "lived", decided)
    assert disk.steps > 100
    trimmed = 0
    for number, image in enumerate(disk.images):
        directory = tmp_path / f"image-{number}"
        directory.mkdir()
        for name, data in image.files:
            (directory / name).write_bytes(data)
        storage = opened(directory, decided.bus)
        assert image.read in expected
        assert expected.index(image.read) + len(image.read) <= expected.index(whole(storage)) + len(whole(storage))
        follow(storage, decided.bus)
        assert expected.endswith(whole(storage))
        assert storage.image == complete.image
        trimmed += storage.start_offset > 0
        storage.close()
    assert trimmed > 10
    complete.close()
    decided.close()
