"""Directories for what is needed only while a process works on it. Those of killed processes are removed.

A process holds a lock on its directory, which the system frees when the process dies. So whoever makes the next one
beside it, or looks there, removes those whose lock is free.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

_PREFIX = "job-"


def _nothing(left: Path) -> None:
    pass


@contextlib.contextmanager
def work_dir(parent: Path, end: Callable[[Path], None] = _nothing) -> Iterator[Path]:
    """Make a directory in ``parent`` for the block, and remove the directories there of processes that are gone.

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


def remove_abandoned(parent: Path, end: Callable[[Path], None] = _nothing) -> None:
    """Remove the directories in ``parent`` of processes that are gone."""
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
