"""A directory for what Spark keeps only while it runs; one that a killed job left behind is cleared away."""

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
    """Make a directory below ``parent`` for as long as the block lasts, and clear those whose jobs are gone.

    Its job holds a lock on it, which the system frees when the process dies.
    """
    private_dir(parent)
    for left in parent.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError), _locked(left):
            shutil.rmtree(left, ignore_errors=True)
    made = Path(tempfile.mkdtemp(dir=parent))
    with _locked(made):
        # It gets its name with its lock: before, another job would take it for one that was left.
        directory = made.rename(made.with_name(_PREFIX + made.name))
        try:
            yield directory
        finally:
            shutil.rmtree(directory, ignore_errors=True)


@contextlib.contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Hold a directory's lock. Raises OSError when it is gone, or locked by whoever uses it."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)
