"""Which file stands at a bus's path, seen from outside: made, looked at, and known again."""

import contextlib
import errno
import os
import sqlite3
import stat
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from bus.interface import BusError, NoBusError
from conf.private_dir import private_dir

# What a bus tells of a cluster is its owner's. SQLite gives -wal and -shm the mode of the file itself.
FILE_MODE = 0o600


class Identity(NamedTuple):
    """Tell one file from another, whatever its name is: no other has these while it is open."""

    device: int
    inode: int


def make_file(path: Path) -> None:
    """Make an empty file for its owner alone, whatever the umask is, where there is none; raises ``BusError``."""
    try:
        private_dir(path.parent)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, FILE_MODE)
    except FileExistsError:
        return
    except OSError as error:
        raise BusError(f"bus {path}: cannot be made: {error.strerror}") from error
    os.fchmod(descriptor, FILE_MODE)
    os.close(descriptor)


def look(path: Path, *, make: bool) -> Identity:
    """Tell what file it is; raises ``NoBusError`` where there is none, ``BusError`` when it can be no bus.

    An empty one will do for whoever is about to ``make`` it one.
    """
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise BusError(f"bus {path}: expected a file, and it is none")
        is_empty = found.st_size == 0
        is_sqlite = is_empty or _is_sqlite(path)
    except FileNotFoundError:
        raise NoBusError(
            f"there is no bus at {path}: start the engine with 'isrflow run', or name its bus with --bus PATH."
        ) from None
    except OSError as error:
        raise BusError(f"bus {path}: {error.strerror}") from error
    if is_empty and not make:
        raise NoBusError(f"there is no bus at {path}: the file is empty. Start the engine with 'isrflow run'.")
    if not is_sqlite:
        raise BusError(f"{path} is no bus: expected a SQLite file, and it is none")
    return Identity(found.st_dev, found.st_ino)


def _is_sqlite(path: Path) -> bool:
    """Say whether SQLite takes a file for its own.

    It is SQLite that opens it: whoever closes a file lets go of all locks that this process has on it, and then the
    next process that closes the bus removes the log that this one writes to. SQLite knows, and waits with it.
    """
    if not os.access(path, os.R_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    connection = sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1", uri=True)
    try:
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.DatabaseError as error:
        # Anything else is for those to tell who use it.
        return error.sqlite_errorcode != sqlite3.SQLITE_NOTADB
    finally:
        connection.close()
    return True


def check_same(path: Path, identity: Identity) -> None:
    """Look whether the file at the path is still the one that was opened; raises ``BusError`` when it is not."""
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


def state_alone(path: Path) -> tuple[int, ...] | None:
    """Tell what stands in a file that nobody has begun to write to; None of one that has a log beside it."""
    with contextlib.suppress(FileNotFoundError):
        if Path(f"{path}-wal").stat().st_size > 0:
            return None
    with contextlib.suppress(FileNotFoundError):
        found = path.stat()
        return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
    return None
