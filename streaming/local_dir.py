"""Directories for what Spark keeps only while it runs. The directories of killed jobs are removed."""

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import structlog

from conf.private_dir import private_dir
from conf.work_dir import work_dir

# The bits of a mode that allow something to other users than the owner.
_OF_OTHERS = 0o077
logger = structlog.get_logger("isrflow.job")


@contextlib.contextmanager
def local_dir(parent: Path) -> Iterator[Path]:
    """Make a directory below ``parent`` for the block, for its owner alone (``conf/work_dir.py``)."""
    private_dir(parent)
    with work_dir(parent) as directory:
        yield directory


@contextlib.contextmanager
def temporary_dir() -> Iterator[Path]:
    """Make a directory for the block where the system keeps temporary files."""
    parent = _own_temporary()
    if _is_private(parent):
        with local_dir(parent) as directory:
            yield directory
    else:
        with tempfile.TemporaryDirectory(prefix="isrflow-", ignore_cleanup_errors=True) as made:
            yield Path(made)


def _own_temporary() -> Path:
    return Path(tempfile.gettempdir()) / f"isrflow-{os.getuid()}"


@contextlib.contextmanager
def socket_dir() -> Iterator[Path | None]:
    """Make a directory with a short name for the block, because the path of a socket has some hundred bytes at most.

    Yield None if other users may write where it would be, because they could put their own socket there.
    """
    parent = _own_temporary()
    if _is_private(parent):
        with local_dir(parent) as directory:
            yield directory
    else:
        logger.warning(
            "there is no private directory for Spark's sockets, so it may use slower TCP", unusable=str(parent)
        )
        yield None


def _is_private(parent: Path) -> bool:
    """Make a directory if it is missing, and return whether it belongs to this user alone."""
    try:
        private_dir(parent)
        found = parent.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & _OF_OTHERS
