"""One job at a time on a checkpoint: whoever comes later waits, for a while."""

import contextlib
import fcntl
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from isrflow.conf.private_dir import private_dir

POLL_INTERVAL_S = 0.05


@contextlib.contextmanager
def checkpoint_lock(checkpoint: Path, timeout_ms: int, give_up: Callable[[], None]) -> Iterator[bool]:
    """Hold the checkpoint's lock, which the system frees when a process dies.

    Gives False when its holder did not let go within ``timeout_ms``: a frozen job, which is fenced by
    its controller epoch and by Spark's own commit log, so going on is safe. ``give_up`` is called
    while waiting, and may raise.
    """
    deadline = time.monotonic() + timeout_ms / 1000
    with _lock_file(checkpoint) as file:
        while not (held := _try_lock(file.fileno())) and time.monotonic() < deadline:
            give_up()
            time.sleep(POLL_INTERVAL_S)
        yield held


def is_locked(checkpoint: Path) -> bool:
    """Say whether a job holds the checkpoint now."""
    with _lock_file(checkpoint) as file:
        return not _try_lock(file.fileno())


def _lock_file(checkpoint: Path) -> IO[str]:
    private_dir(checkpoint.parent)
    return checkpoint.with_name(checkpoint.name + ".lock").open("a")


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
