"""Make directories that only their owner may read, because they hold a cluster's state, logs and requests."""

import errno
import os
from pathlib import Path

PRIVATE_DIR_MODE = 0o700


def private_dir(path: Path) -> Path:
    """Create a directory and its missing parents, each for its owner alone, whatever the umask.

    An existing directory keeps its mode, because its owner may have opened it to a group on purpose. Return
    ``path``. Raises ``OSError``.
    """
    missing: list[Path] = []
    while not path.is_dir():
        missing.append(path)
        path = path.parent
    for directory in reversed(missing):
        try:
            directory.mkdir(mode=PRIVATE_DIR_MODE, exist_ok=True)
        except FileExistsError as error:
            # The system only says that it exists.
            raise NotADirectoryError(errno.ENOTDIR, "it is a file, but must be a directory", str(directory)) from error
        os.chmod(directory, PRIVATE_DIR_MODE)
    return missing[0] if missing else path
