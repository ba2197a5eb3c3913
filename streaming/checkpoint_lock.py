"""One job at a time on a checkpoint: the next one of the same bus waits, for a while; one of another bus is refused."""

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from bus.interface import Bus
from conf.private_dir import private_dir
from streaming.ends import JobError

POLL_INTERVAL_S = 0.05
# Between taking the lock and saying who did, its holder does nothing else.
SAID_TIMEOUT_S = 1.0
_RECORD_BYTES_MAX = 1 << 16


class Holder(msgspec.Struct, frozen=True):
    """Say who holds a lock: the process, its bus by name, and what that bus is told from others by."""

    pid: int
    bus: str
    marks: tuple[str, ...]

    @classmethod
    def of(cls, bus: Bus, name: str) -> "Holder":
        """Describe this process and its bus, which messages call ``name``."""
        return cls(os.getpid(), name, bus.marks(name))

    def has_same_bus(self, other: "Holder") -> bool:
        """Say whether two jobs take turns on one bus."""
        return not set(self.marks).isdisjoint(other.marks)


class CheckpointLock:
    """Hold a checkpoint's lock, which the system frees when the process dies.

    A job that goes on without it, past one that is frozen, takes it as soon as it is free.
    """

    def __init__(self, checkpoint: Path, holder: Holder) -> None:
        private_dir(checkpoint.parent)
        self._checkpoint = checkpoint
        self._holder = holder
        self._file = checkpoint.with_name(checkpoint.name + ".lock").open("a+b", buffering=0)
        self.held = False

    def take(self) -> bool:
        """Take the lock if it is free, and say whether it is held now."""
        if not self.held:
            try:
                fcntl.flock(self._file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            self.held = True
            self._file.truncate(0)
            self._file.write(msgspec.json.encode(self._holder))
        return True

    def take_or_check(self) -> bool:
        """Take the lock, or see that a job of the same bus holds it. Raises ``JobError`` where it is another's."""
        deadline = time.monotonic() + SAID_TIMEOUT_S
        while not self.take():
            found = self._found()
            if found is not None and found.has_same_bus(self._holder):
                return False
            if time.monotonic() > deadline:
                raise JobError(self._refusal(found))
            time.sleep(POLL_INTERVAL_S)
        return True

    def wait(self, timeout_ms: int, give_up: Callable[[], None]) -> bool:
        """Wait for the lock; False when its holder did not let go within ``timeout_ms``.

        That is a frozen job, which is fenced by its controller epoch and by Spark's own commit log, so going on is
        safe. ``give_up`` is called while waiting, and may raise. Raises ``JobError`` where a job of another bus was
        quicker.
        """
        deadline = time.monotonic() + timeout_ms / 1000
        while not self.take_or_check() and time.monotonic() < deadline:
            give_up()
            time.sleep(POLL_INTERVAL_S)
        return self.held

    def _found(self) -> Holder | None:
        """Read who holds the lock; None while that is being written, or was by a version that did not say."""
        self._file.seek(0)
        with contextlib.suppress(msgspec.MsgspecError):
            return msgspec.json.decode(self._file.read(_RECORD_BYTES_MAX) or b"", type=Holder)
        return None

    def _refusal(self, found: Holder | None) -> str:
        whose = f"process {found.pid} on bus {found.bus}" if found else "a process that does not say its bus"
        return (
            f"checkpoint {self._checkpoint} is in use by {whose}: "
            "leave checkpoint.dir empty, or name one that no other bus has"
        )

    def close(self) -> None:
        """Let go of the lock."""
        self.held = False
        self._file.close()


@contextlib.contextmanager
def checkpoint_lock(checkpoint: Path, holder: Holder) -> Iterator[CheckpointLock]:
    """Give a checkpoint's lock, not yet taken, for as long as the block lasts."""
    lock = CheckpointLock(checkpoint, holder)
    try:
        yield lock
    finally:
        lock.close()
