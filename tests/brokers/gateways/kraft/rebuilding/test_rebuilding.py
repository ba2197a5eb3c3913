"""A gateway rebuilds a lost or damaged log from another gateway or from brokers if the bus lacks old decisions."""

import asyncio
import contextlib
import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from brokers.gateways.kraft.log import directory as directories
from brokers.gateways.kraft.log.errors import DamagedError, StorageError
from brokers.gateways.kraft.rebuilding import opening, peer, proven_log
from brokers.gateways.kraft.rebuilding.opening import Opening
from brokers.gateways.kraft.settings import Identity
from tests.brokers.gateways.kraft.storages import topic
from tests.support.broker_copies import broker_copy, files_of, log_of
from tests.support.gateway_in_process import TIMEOUT_S, InProcessQuorum
from tests.support.trimming import trim
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kraft
SNAPSHOT_EVERY_BYTES = 1_500
RETAINED = 3


class Lossy(InProcessQuorum):
    """Two gateways that take many snapshots, on a bus that ``forget`` trims to almost nothing."""

    def __init__(self, directory: Path) -> None:
        settings = {"metadata_log_max_record_bytes_between_snapshots": SNAPSHOT_EVERY_BYTES, "rebuild_wait_max_ms": 400}
        super().__init__(directory, 2, **settings)
        client = self.client()
        self.join(client, 1, 2, 3)
        client.close()

    def log(self, gateway: int) -> Path:
        return self.directory / f"gateway-{gateway}"

    def publish(self, *events: bytes) -> None:
        seq = self.bus.publish(list(events))
        wait_until(lambda: self.bus.decided_seq() >= seq, "what was published")

    def create(self, name: str, topics: int = 12) -> None:
        """Create topics one by one, and wait until both running gateways have written them."""
        for number in range(topics):
            self.publish(topic(f"{name}-{number}", 3))
        wait_until(self._all_have(f"{name}-{topics - 1}".encode()), "the gateways to write the last of them")

    def _all_have(self, text: bytes) -> Callable[[], bool]:
        running = [number for number, gateway in self.gateways.items() if not gateway.has_ended]
        return lambda: all(text in log_of(self.log(number)) for number in running)

    def forget(self) -> None:
        self.bus.passed(self.bus.decided_seq())
        trim(self.bus, RETAINED)

    def end(self, gateway: int) -> None:
        self.gateways[gateway].stop()


@pytest.fixture
def quorum(tmp_path: Path) -> Iterator[Lossy]:
    quorum = Lossy(tmp_path)
    yield quorum
    quorum.stop()


def files(directory: Path) -> dict[str, bytes]:
    return files_of(directory, ".log", ".checkpoint")


def same(quorum: Lossy) -> None:
    """Compare both gateways' logs where they overlap, and their snapshots of the same name.

    Segments that begin at the same offset may end at different ones, because each gateway takes snapshots by itself.
    """
    ours, theirs = files(quorum.log(100)), files(quorum.log(101))
    for name in ours.keys() & theirs.keys():
        if name.endswith(".checkpoint"):
            assert ours[name] == theirs[name], name
    one, other = log_of(quorum.log(100)), log_of(quorum.log(101))
    assert one.endswith(other) or other.endswith(one)


@pytest.mark.parametrize("lost", [100, 101], ids=["the one that leads", "the other"])
def test_an_empty_directory_is_filled_from_the_other_gateway(quorum: Lossy, lost: int) -> None:
    quorum.create("early")
    quorum.end(lost)
    shutil.rmtree(quorum.log(lost))
    quorum.create("meanwhile", 3)
    quorum.forget()
    there = files(quorum.log(201 - lost))
    quorum.start(lost)
    held = files(quorum.log(lost))
    # The other gateway may have taken another snapshot since.
    there = files(quorum.log(201 - lost)) | there
    shared = held.keys() & there.keys()
    assert {Path(name).suffix for name in shared} == {".log", ".checkpoint"}
    assert all(held[name].startswith(there[name]) or there[name].startswith(held[name]) for name in shared)
    quorum.create("late")
    same(quorum)
    # It continues without the other gateway, even after a restart.
    quorum.end(201 - lost)
    quorum.create("alone", 2)
    quorum.end(lost)
    quorum.start(lost)


@pytest.mark.parametrize("suffix", [".log", ".ends", ".checkpoint"])
@pytest.mark.parametrize("is_trimmed", [True, False], ids=["bus trimmed", "bus whole"])
def test_a_damaged_file_is_set_aside_and_rebuilt(quorum: Lossy, suffix: str, is_trimmed: bool) -> None:
    quorum.create("early")
    quorum.end(100)
    if is_trimmed:
        quorum.forget()
    path = sorted(path for path in quorum.log(100).iterdir() if path.suffix == suffix)[0]
    sound = path.read_bytes()
    damaged = sound[:20] + bytes([sound[20] ^ 1]) + sound[21:]
    path.write_bytes(damaged)
    quorum.start(100)
    asides = [aside / path.name for aside in quorum.log(100).glob("aside-*")]
    assert damaged in [aside.read_bytes() for aside in asides if aside.exists()]
    quorum.create("late")
    same(quorum)


def test_a_file_that_cannot_be_read_is_set_aside(quorum: Lossy, monkeypatch: pytest.MonkeyPatch) -> None:
    quorum.create("early")
    quorum.end(100)
    quorum.forget()
    for path in quorum.log(100).glob("*.log"):
        path.unlink()
        path.mkdir()
    quorum.start(100)
    assert list(quorum.log(100).glob("aside-1/*.log"))
    quorum.create("late")
    same(quorum)
    quorum.end(100)
    [read, bad] = [os.pread, {path.stat().st_ino for path in quorum.log(100).glob("*.log")}]

    def pread(descriptor: int, size: int, position: int) -> bytes:
        if os.fstat(descriptor).st_ino in bad:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return read(descriptor, size, position)

    monkeypatch.setattr(os, "pread", pread)
    quorum.start(100)
    assert list(quorum.log(100).glob("aside-2/*.log"))
    quorum.create("later")
    same(quorum)


def test_a_disk_that_keeps_failing_ends_the_gateway(quorum: Lossy, monkeypatch: pytest.MonkeyPatch) -> None:
    quorum.create("early", 2)
    quorum.end(100)

    def failing(*arguments: Any, **options: Any) -> None:
        raise DamagedError("damaged again")

    monkeypatch.setattr(opening, "Storage", failing)
    with pytest.raises(StorageError, match="its disk may be failing"):
        opened(quorum, ())


def test_without_another_gateway_the_log_comes_from_brokers(quorum: Lossy, tmp_path: Path) -> None:
    quorum.create("early")
    quorum.end(100)
    quorum.end(101)
    quorum.forget()
    before = log_of(quorum.log(101))
    copies = [
        broker_copy(tmp_path / "brokers", quorum.log(101), broker, cluster_id=quorum.cluster_id) for broker in (1, 2, 3)
    ]
    shutil.rmtree(quorum.log(100))
    shutil.rmtree(quorum.log(101))
    with pytest.raises(StorageError, match=r"removed from the bus.*cannot be reached.*rebuild\.from\.dirs"):
        opened(quorum, ())
    quorum.copies = tuple(copies)
    quorum.start(100)
    assert log_of(quorum.log(100)).startswith(before)
    quorum.create("late")
    # The other gateway copies it from this one.
    quorum.copies = ()
    quorum.start(101)
    quorum.create("later")
    same(quorum)


def test_a_log_that_is_too_old_is_set_aside(quorum: Lossy) -> None:
    quorum.create("early", 2)
    quorum.end(101)
    held = log_of(quorum.log(101))
    quorum.create("meanwhile")
    quorum.forget()
    quorum.start(101)
    assert log_of(quorum.log(101) / "aside-1") == held
    quorum.create("late")
    same(quorum)


class Died(BaseException):
    """The simulated death of the process."""


class Steps:
    """A counter of steps on the files under a directory; the ``dies_at``th step and all later ones are not done."""

    def __init__(self, directory: Path, dies_at: int, patch: pytest.MonkeyPatch) -> None:
        self.taken, self._dies_at, self._directory = 0, dies_at, directory
        for module, name in (
            (peer, "write_all"),
            (peer, "flush_directory"),
            (proven_log, "flush_directory"),
            (directories, "flush_directory"),
            *([] if dies_at < 0 else [(Path, "replace"), (Path, "mkdir"), (Path, "rmdir"), (Path, "unlink")]),
        ):
            patch.setattr(module, name, self._counted(getattr(module, name)))

    def _counted(self, act: Callable[..., Any]) -> Callable[..., Any]:
        def counted(target: Any, *rest: Any, **named: Any) -> Any:
            path = Path(os.readlink(f"/proc/self/fd/{target}")) if isinstance(target, int) else target
            if path.is_relative_to(self._directory):
                self.taken += 1
                if self.taken >= self._dies_at > 0:
                    raise Died
            return act(target, *rest, **named)

        return counted

    @property
    def is_dead(self) -> bool:
        return self.taken >= self._dies_at


def opened(quorum: Lossy, copies: tuple[Path, ...]) -> None:
    """Open the log of gateway 100 as it does at its start, and close it again."""
    identity = Identity(
        gateway=100,
        voters=quorum.voters,
        cluster_id=quorum.cluster_id,
        directory=quorum.log(100),
        copies=copies,
    )
    opening = Opening(identity, snapshot_interval_bytes=1 << 30, rebuild_wait_max_ms=100)
    try:
        asyncio.run(opening.storage(quorum.bus, int(1_000 * TIMEOUT_S)))
    finally:
        opening.close()


@pytest.mark.parametrize("source", ["gateway", "broker"])
def test_a_rebuild_that_is_killed_anywhere_starts_again(
    quorum: Lossy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    monkeypatch.setattr(opening, "PEERS_FIRST_S", 0.0)
    quorum.create("early")
    quorum.end(100)
    stale = tmp_path / "stale"
    shutil.copytree(quorum.log(100), stale)
    quorum.create("meanwhile", 6)
    quorum.forget()
    copies: tuple[Path, ...] = ()
    if source == "broker":
        quorum.end(101)
        copies = tuple(
            broker_copy(tmp_path / "brokers", quorum.log(101), broker, cluster_id=quorum.cluster_id)
            for broker in (1, 2, 3)
        )
    kept = files(stale)
    dies_at, is_dead = 1, True
    while is_dead:
        shutil.rmtree(quorum.log(100))
        shutil.copytree(stale, quorum.log(100))
        with monkeypatch.context() as patch:
            steps = Steps(quorum.log(100), dies_at, patch)
            with contextlib.suppress(Died):
                opened(quorum, copies)
            is_dead = steps.is_dead
        opened(quorum, copies)
        # The other gateway may have dropped older segments by now. It removes their files with its next write.
        assert log_of(quorum.log(101)).endswith(log_of(quorum.log(100)))
        asides = [files(aside) for aside in quorum.log(100).glob("aside-*")]
        assert {name: data for aside in asides for name, data in aside.items()} == kept, "nothing was lost"
        assert not list(quorum.log(100).glob("rebuilt*"))
        dies_at += 1
    assert dies_at > 10
