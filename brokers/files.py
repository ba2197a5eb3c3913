"""Descriptors and locks of files."""

import errno
import fcntl
import os
from pathlib import Path
from typing import BinaryIO

# No file has this descriptor, so the use of a closed one is an error.
CLOSED = -1
# These errors say nothing about the disk: too many files are open.
TOO_MANY_OPEN = frozenset({errno.EMFILE, errno.ENFILE})


def write_all(descriptor: int, data: bytes | bytearray | memoryview) -> None:
    """Write all of ``data``, in several calls if need be."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def closed(descriptor: int) -> int:
    """Close ``descriptor`` and return ``CLOSED``. Do nothing if it is that already.

    An owner that keeps the result cannot close twice. The system may have given the number to another file since then.
    """
    if descriptor != CLOSED:
        os.close(descriptor)
    return CLOSED


def locked(path: Path) -> BinaryIO:
    """Lock a file for this process, until the file is closed or the process ends; make it if it is missing.

    Raises ``BlockingIOError`` when another process has the lock.
    """
    lock = path.open("ab")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise
    return lock
