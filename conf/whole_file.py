"""Small files that are always whole: written beside their place, forced to disk, then moved into place."""

import os
from pathlib import Path


def replace(path: Path, body: str | bytes, mode: int = 0o644) -> None:
    """Write ``body`` to ``path`` so that a reader sees all of the old or all of the new content, even after a crash.

    The new file has ``mode`` from the beginning. Only one process at a time may write ``path``.
    """
    beside = path.with_name(f"{path.name}.tmp")
    # A file that a crash has left may have another mode.
    beside.unlink(missing_ok=True)
    with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(body.encode() if isinstance(body, str) else body)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
    flush_directory(path.parent)


def flush_directory(path: Path) -> None:
    """Force a directory's entries to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
