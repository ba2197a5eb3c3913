"""One job uses a checkpoint at a time: the next job of its bus waits, with a bound; a job of another bus is refused."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from bus.embedded import EmbeddedBus
from streaming.checkpoint_lock import CheckpointLock, Holder, checkpoint_lock
from streaming.job_errors import JobError
from tests.support.waiting import TIMEOUT_S, wait_until

HOLD = """
import sys, time
from pathlib import Path
from bus.embedded import EmbeddedBus
from streaming.checkpoint_lock import Holder, checkpoint_lock
with checkpoint_lock(Path(sys.argv[1]), Holder.of(EmbeddedBus(sys.argv[2]), "bus.db")) as lock:
    print(lock.take(), flush=True)
    lock.decides_in(7)
    print("decides", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return tmp_path / "data" / "checkpoint"


@pytest.fixture
def holder(checkpoint: Path, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-c", HOLD, checkpoint, tmp_path / "bus.db"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"True\n"
    yield process
    process.kill()
    process.wait(TIMEOUT_S)


@pytest.fixture
def lock(checkpoint: Path, tmp_path: Path) -> Iterator[CheckpointLock]:
    with checkpoint_lock(checkpoint, of(tmp_path / "bus.db")) as lock:
        yield lock


def of(file: Path) -> Holder:
    bus = EmbeddedBus(file)
    bus.close()
    return Holder.of(bus, file.name)


def never() -> None:
    """Never give up waiting."""


def test_a_lock_is_free_again_after_its_holder(checkpoint: Path, lock: CheckpointLock, tmp_path: Path) -> None:
    assert lock.take_or_check()
    with checkpoint_lock(checkpoint, of(tmp_path / "bus.db")) as second:
        assert not second.take_or_check()
        lock.close()
        assert second.take_or_check()


def test_a_killed_holder_releases_the_lock(lock: CheckpointLock, holder: subprocess.Popen[bytes]) -> None:
    assert not lock.take_or_check()
    holder.kill()
    assert lock.wait(30_000, never)


def test_a_holder_that_died_is_told_from_one_that_lives_and_from_one_of_another_epoch(
    lock: CheckpointLock, holder: subprocess.Popen[bytes], checkpoint: Path, tmp_path: Path
) -> None:
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"decides\n"
    assert not lock.is_left_in(7)
    holder.kill()
    wait_until(lambda: lock.is_left_in(7), "the killed holder", TIMEOUT_S)
    # The newest claim may be of a job on another machine.
    assert not lock.is_left_in(8)
    with checkpoint_lock(checkpoint, of(tmp_path / "other.db")) as other:
        assert not other.is_left_in(7)
    # Looking does not take the lock, and leaves the holder's line in it.
    assert lock.is_left_in(7)
    assert lock.take()
    assert not lock.is_left_in(7)


def test_a_job_that_has_the_lock_itself_knows_of_no_dead_one_and_keeps_the_lock(
    checkpoint: Path, lock: CheckpointLock, tmp_path: Path
) -> None:
    assert lock.is_free()
    assert lock.take()
    lock.decides_in(3)
    assert not lock.is_left_in(3)
    assert not lock.is_free()
    with checkpoint_lock(checkpoint, of(tmp_path / "bus.db")) as other:
        assert not other.is_free()
        assert not other.take()


def test_a_job_that_gets_the_lock_late_says_its_epoch_then(checkpoint: Path, tmp_path: Path) -> None:
    with checkpoint_lock(checkpoint, of(tmp_path / "bus.db")) as frozen:
        assert frozen.take()
        with checkpoint_lock(checkpoint, of(tmp_path / "bus.db")) as lock:
            lock.decides_in(2)
            frozen.release()
            assert not frozen.is_left_in(2)
            assert lock.take()
            lock.release()
            assert frozen.is_left_in(2)


def test_a_lock_file_of_an_older_version_names_no_epoch(checkpoint: Path, lock: CheckpointLock, tmp_path: Path) -> None:
    said = msgspec.to_builtins(of(tmp_path / "bus.db"))
    del said["controller_epoch"]
    checkpoint.with_name("checkpoint.lock").write_bytes(msgspec.json.encode(said))
    assert not lock.is_left_in(1)
    assert lock.take_or_check()


def test_a_holder_that_keeps_the_lock_is_waited_for_with_a_bound(
    lock: CheckpointLock, holder: subprocess.Popen[bytes]
) -> None:
    started = time.monotonic()
    assert not lock.wait(200, never)
    assert time.monotonic() - started >= 0.2
    # A job that continued without the lock gets it as soon as it is free.
    assert not lock.take()
    holder.kill()
    holder.wait(TIMEOUT_S)
    assert lock.take()


def test_a_waiter_may_give_up(lock: CheckpointLock, holder: subprocess.Popen[bytes]) -> None:
    def give_up() -> None:
        raise LookupError("superseded")

    with pytest.raises(LookupError, match="superseded"):
        lock.wait(30_000, give_up)


def test_a_job_of_another_bus_is_refused_by_name(
    checkpoint: Path, holder: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    with checkpoint_lock(checkpoint, of(tmp_path / "other.db")) as other:
        with pytest.raises(JobError, match=rf"in use by process {holder.pid} on bus bus\.db: leave checkpoint\.dir"):
            other.take_or_check()
        with pytest.raises(JobError, match="in use"):
            other.wait(30_000, never)
        holder.kill()
        holder.wait(TIMEOUT_S)
        assert other.take_or_check()


def test_a_copy_of_a_bus_is_another_bus(tmp_path: Path) -> None:
    (tmp_path / "copy.db").write_bytes((tmp_path / "bus.db").read_bytes() if of(tmp_path / "bus.db") else b"")
    assert not of(tmp_path / "copy.db").has_same_bus(of(tmp_path / "bus.db"))
    (tmp_path / "link.db").symlink_to(tmp_path / "bus.db")
    assert of(tmp_path / "link.db").has_same_bus(of(tmp_path / "bus.db"))


def test_on_kafka_a_bus_is_known_by_its_identity_whatever_its_address() -> None:
    one, moved = Holder(1, "a", ("kafka://a:1/x", "77")), Holder(2, "b", ("kafka://b:1/x", "77"))
    assert moved.has_same_bus(one)
    assert Holder(2, "a", ("kafka://a:1/x",)).has_same_bus(one)
    assert not Holder(2, "c", ("kafka://b:1/x", "78")).has_same_bus(one)


def test_a_holder_that_names_no_bus_is_left_alone(checkpoint: Path, lock: CheckpointLock, tmp_path: Path) -> None:
    assert lock.take()
    checkpoint.with_name("checkpoint.lock").write_bytes(b"")
    with checkpoint_lock(checkpoint, of(tmp_path / "bus.db")) as other, pytest.raises(JobError, match="an unknown bus"):
        other.take_or_check()
