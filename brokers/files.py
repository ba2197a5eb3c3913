"""Small files that are always whole: written beside their place, forced to disk, then moved into place."""

import errno
import fcntl
import os
from pathlib import Path
from typing import BinaryIO

# No file has this descriptor, so the use of a closed one is an error.
CLOSED = -1
# These errors say nothing about the disk: too many files are open.
TOO_MANY_OPEN = frozenset({errno.EMFILE, errno.ENFILE})


def replace(path: Path, text: str) -> None:
    """Write ``text`` to ``path`` so that a reader sees all of the old or all of the new content, even after a crash."""
    beside = path.with_name(f"{path.name}.tmp")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        write_all(descriptor, text.encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    beside.replace(path)
    flush_directory(path.parent)


def write_all(descriptor: int, data: bytes | bytearray | memoryview) -> None:
    """Write all of ``data``, in as many calls as that takes."""
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


def flush_directory(path: Path) -> None:
    """Force a directory's entries to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
