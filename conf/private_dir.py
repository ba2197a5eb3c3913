"""Directories that only their owner may look into: state, logs and requests of a cluster lie there."""

import os
from pathlib import Path

PRIVATE_DIR_MODE = 0o700


def private_dir(path: Path) -> Path:
    """Make a directory and those above it that are missing, each for its owner alone, whatever the umask is.

    One that is there keeps its mode: whoever opened it to a group meant that. Raises ``OSError``.
    """
    missing: list[Path] = []
    while not path.is_dir():
        missing.append(path)
        path = path.parent
    for directory in reversed(missing):
        directory.mkdir(mode=PRIVATE_DIR_MODE, exist_ok=True)
        os.chmod(directory, PRIVATE_DIR_MODE)
    return missing[0] if missing else path
