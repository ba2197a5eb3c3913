"""The file at a bus's path, seen from outside: inspect it, and recognize it again."""

import contextlib
import errno
import os
import sqlite3
import stat
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from isrflow.errors import BusError, NoBusError

# The endings of the files that SQLite keeps beside its own: the write-ahead log, and the memory that processes share.
WAL, SHARED = "-wal", "-shm"


class Identity(NamedTuple):
    """What distinguishes an open file from all others, whatever its name is."""

    device: int
    inode: int


def look(path: Path, *, make: bool) -> Identity:
    """Return the identity of the file at ``path``. With ``make``, accept an empty file.

    Raises ``NoBusError`` if there is none, ``BusError`` if it cannot be a bus.
    """
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise BusError(f"bus {path}: expected a regular file")
        is_empty = found.st_size == 0
        is_sqlite = is_empty or _is_sqlite(path)
    except FileNotFoundError:
        raise NoBusError(
            f"there is no bus at {path}: start the engine with 'isrflow run', or name its bus with --bus PATH."
        ) from None
    except OSError as error:
        raise BusError(f"bus {path}: {obstacle_above(path) or error.strerror}") from error
    if is_empty and not make:
        raise NoBusError(f"there is no bus at {path}: the file is empty. Start the engine with 'isrflow run'.")
    if not is_sqlite:
        raise BusError(f"{path} is not a bus: expected a SQLite file")
    return Identity(found.st_dev, found.st_ino)


def obstacle_above(path: Path) -> str:
    """Return which directory above ``path`` is a file, or may not be entered; empty if there is none."""
    for directory in reversed(path.absolute().parents):
        if not os.path.exists(directory):
            break
        if not os.path.isdir(directory):
            return f"{directory} is a file, but must be a directory"
        if not os.access(directory, os.X_OK):
            return f"this user may not enter {directory}"
    return ""


def _is_sqlite(path: Path) -> bool:
    """Return whether SQLite accepts the file as its own.

    Only SQLite may open the file. When a process closes a file, it loses all its locks on it. The next process that
    closes the bus would then remove the log that this one writes to. SQLite knows its own locks and defers the close.
    """
    if not os.access(path, os.R_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    connection = sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1", uri=True)
    try:
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.DatabaseError as error:
        # Any other error shows again when the file is used, and is reported there.
        return error.sqlite_errorcode != sqlite3.SQLITE_NOTADB
    finally:
        connection.close()
    return True


def check_same(path: Path, identity: Identity) -> None:
    """Raise ``BusError`` unless the file at the path is the one that was opened."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        raise BusError(
            f"bus {path}: the file was removed or moved away while this process had it open: "
            "put it back and start this process again"
        ) from None
    except OSError as error:
        raise BusError(f"bus {path}: {error.strerror}") from error
    if (found.st_dev, found.st_ino) != identity:
        raise BusError(
            f"bus {path}: another file took its place while this process had it open: "
            "start this process again to use that one"
        )


def file_beside(path: Path, ending: str) -> Path:
    """Return the file that SQLite keeps for the one at ``path``. It is beside the file that a link leads to."""
    return Path(os.path.realpath(path) + ending)


def unwritten_state(path: Path) -> tuple[int, ...] | None:
    """Return values that change with a file that has no write-ahead log; None if the file has one."""
    with contextlib.suppress(FileNotFoundError):
        if file_beside(path, WAL).stat().st_size > 0:
            return None
    with contextlib.suppress(FileNotFoundError):
        found = path.stat()
        return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
    return None
