"""The file of a new embedded bus."""

import os
from pathlib import Path

from bus.interface import BusError
from conf.private_dir import private_dir
from isrflow.sqlite.file_identity import obstacle_above

# Only the owner may read what a bus says about a cluster. SQLite gives -wal and -shm the same mode.
FILE_MODE = 0o600


def make_file(path: Path) -> None:
    """Make an empty file that only its owner may use, if there is none. Raises ``BusError``."""
    try:
        private_dir(path.parent)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, FILE_MODE)
    except FileExistsError:
        return
    except OSError as error:
        # The file may be there already, behind an obstacle.
        said = obstacle_above(path) or f"cannot be made: {error.strerror}"
        raise BusError(f"bus {path}: {said}") from error
    os.fchmod(descriptor, FILE_MODE)
    os.close(descriptor)
