"""One job at a time on a checkpoint.

The next job of the same bus waits for a while. A job of another bus is refused.
"""

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from bus.interface import Bus
from conf.private_dir import private_dir
from streaming.job_errors import JobError

POLL_INTERVAL_S = 0.05
# A holder writes its name right after it took the lock, so a reader need not wait longer than this.
SAID_TIMEOUT_S = 1.0
_RECORD_BYTES_MAX = 1 << 16


class Holder(msgspec.Struct, frozen=True):
    """The process that holds a lock, and the identities of its bus."""

    pid: int
    # The bus's name in messages.
    bus: str
    # ``Bus.identities``.
    identities: tuple[str, ...]
    # The epoch in which the process decides; 0 before its claim.
    controller_epoch: int = 0

    @classmethod
    def of(cls, bus: Bus, name: str) -> "Holder":
        """Describe this process and its bus. Messages call the bus ``name``."""
        return cls(os.getpid(), name, bus.identities(name))

    def has_same_bus(self, other: "Holder") -> bool:
        """Return whether both jobs are on one bus, so that they take turns."""
        return not set(self.identities).isdisjoint(other.identities)


class CheckpointLock:
    """A checkpoint's lock, which the system frees when the process dies.

    A job may go on without the lock because the holder is frozen. It then takes the lock as soon as it is free.
    """

    def __init__(self, checkpoint: Path, holder: Holder) -> None:
        private_dir(checkpoint.parent)
        self._checkpoint = checkpoint
        self._holder = holder
        self._file = checkpoint.with_name(checkpoint.name + ".lock").open("a+b", buffering=0)
        self.held = False

    def take(self) -> bool:
        """Take the lock if it is free. Return whether this job holds it."""
        if not self.held:
            if not self._lock_now():
                return False
            self.held = True
            self._write()
        return True

    def _lock_now(self) -> bool:
        """Lock the file if no other process has it locked, and return whether this one has."""
        try:
            fcntl.flock(self._file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def is_free(self) -> bool:
        """Return whether no process holds the lock now."""
        if self.held or not self._lock_now():
            return False
        fcntl.flock(self._file.fileno(), fcntl.LOCK_UN)
        return True

    def decides_in(self, controller_epoch: int) -> None:
        """Write into the lock file in which epoch this job decides: now, or as soon as it holds the lock."""
        self._holder = msgspec.structs.replace(self._holder, controller_epoch=controller_epoch)
        if self.held:
            self._write()

    def _write(self) -> None:
        self._file.truncate(0)
        self._file.write(msgspec.json.encode(self._holder))

    def is_left_in(self, controller_epoch: int) -> bool:
        """Return whether a job on this machine held the lock while it decided in an epoch, and has ended or died."""
        if self.held or not self._lock_now():
            return False
        try:
            found = self._found()
            return found is not None and found.controller_epoch == controller_epoch and found.has_same_bus(self._holder)
        finally:
            fcntl.flock(self._file.fileno(), fcntl.LOCK_UN)

    def take_or_check(self) -> bool:
        """Take the lock, or check that a job of the same bus holds it. Raises ``JobError`` if another's does."""
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
        """Wait for the lock. Return False if its holder keeps it for ``timeout_ms``.

        Such a holder is frozen. Going on is safe, because the controller epoch and Spark's own commit log fence it.
        ``give_up`` is called during the wait and may raise. Raises ``JobError`` if a job of another bus took the lock.
        """
        deadline = time.monotonic() + timeout_ms / 1000
        while not self.take_or_check() and time.monotonic() < deadline:
            give_up()
            time.sleep(POLL_INTERVAL_S)
        return self.held

    def _found(self) -> Holder | None:
        """Read who holds the lock; None while it is being written."""
        self._file.seek(0)
        with contextlib.suppress(msgspec.MsgspecError):
            return msgspec.json.decode(self._file.read(_RECORD_BYTES_MAX) or b"", type=Holder)
        return None

    def _refusal(self, found: Holder | None) -> str:
        whose = f"process {found.pid} on bus {found.bus}" if found else "a process of an unknown bus"
        return (
            f"checkpoint {self._checkpoint} is in use by {whose}: "
            "leave checkpoint.dir empty, or name one that no other bus uses"
        )

    def release(self) -> None:
        """Let another job take the lock. It can be taken again."""
        if self.held:
            fcntl.flock(self._file.fileno(), fcntl.LOCK_UN)
            self.held = False

    def close(self) -> None:
        """Release the lock."""
        self.held = False
        self._file.close()


@contextlib.contextmanager
def checkpoint_lock(checkpoint: Path, holder: Holder) -> Iterator[CheckpointLock]:
    """Yield a checkpoint's lock, not yet taken, and release it at the end of the block."""
    lock = CheckpointLock(checkpoint, holder)
    try:
        yield lock
    finally:
        lock.close()
