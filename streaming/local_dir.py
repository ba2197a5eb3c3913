"""A directory for what Spark keeps only while it runs. Directories of killed jobs are removed."""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from conf.private_dir import private_dir

_PREFIX = "job-"


@contextlib.contextmanager
def local_dir(parent: Path) -> Iterator[Path]:
    """Make a directory below ``parent`` for the block, and remove the directories of jobs that are gone.

    A job holds a lock on its directory, which the system frees when the process dies.
    """
    private_dir(parent)
    for left in parent.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError), _locked(left):
            shutil.rmtree(left, ignore_errors=True)
    made = Path(tempfile.mkdtemp(dir=parent))
    with _locked(made):
        # It gets its final name only now that it is locked. Otherwise another job would remove it as abandoned.
        directory = made.rename(made.with_name(_PREFIX + made.name))
        try:
            yield directory
        finally:
            shutil.rmtree(directory, ignore_errors=True)


@contextlib.contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Hold a directory's lock. Raises ``OSError`` if the directory is gone or in use."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)
