"""Working directories of processes. The directories of killed processes are removed.

A process holds a lock on its directory, and the system frees the lock when the process dies. The next process that
makes or looks for a directory there removes those whose lock is free.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

_PREFIX = "job-"


@contextlib.contextmanager
def work_dir(parent: Path, end: Callable[[Path], object] = lambda left: None) -> Iterator[Path]:
    """Make a directory in ``parent`` for the block. Remove the directories that dead processes left there.

    ``end`` ends what still runs in such a directory. Where it raises ``OSError``, the directory stays.
    """
    remove_abandoned(parent, end)
    made = Path(tempfile.mkdtemp(dir=parent))
    with _locked(made):
        # It gets its final name only now that it is locked. Otherwise another process would remove it as abandoned.
        directory = made.rename(made.with_name(_PREFIX + made.name))
        try:
            yield directory
        finally:
            shutil.rmtree(directory, ignore_errors=True)


def remove_abandoned(parent: Path, end: Callable[[Path], object] = lambda left: None) -> None:
    """Remove the directories that dead processes left in ``parent``."""
    for left in parent.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError), _locked(left):
            end(left)
            shutil.rmtree(left, ignore_errors=True)


@contextlib.contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Hold a directory's lock. Raises ``OSError`` if the directory is gone or in use."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)
