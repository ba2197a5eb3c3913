"""Directories for what Spark keeps only while it runs. Those of killed jobs are removed."""

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import structlog

from conf.private_dir import private_dir

_PREFIX = "job-"
# What a mode allows to anybody but the owner.
_OF_OTHERS = 0o077
logger = structlog.get_logger("isrflow.job")


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
def socket_dir() -> Iterator[Path | None]:
    """Make a directory with a short name for the block, because the path of a socket has some hundred bytes at most.

    None if others may write where it would be, because they could put their own socket there.
    """
    parent = Path(tempfile.gettempdir()) / f"isrflow-{os.getuid()}"
    if _is_private(parent):
        with local_dir(parent) as directory:
            yield directory
    else:
        logger.warning(
            "there is no private directory for Spark's sockets, so it may use slower TCP", unusable=str(parent)
        )
        yield None


def _is_private(parent: Path) -> bool:
    """Say whether a directory, which is made if it is missing, belongs to this user alone."""
    try:
        private_dir(parent)
        found = parent.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & _OF_OTHERS


@contextlib.contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Hold a directory's lock. Raises ``OSError`` if the directory is gone or in use."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)
