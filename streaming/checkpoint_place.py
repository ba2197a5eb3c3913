"""The place of a bus's checkpoint, and whether a job could keep one there."""

import errno
import os
import tempfile
from pathlib import Path

from bus.open_bus import files_name
from conf.private_dir import private_dir
from conf.settings import Settings

SUFFIX = ".checkpoint"
# About as much as a small batch writes.
PROBE_BYTES = 1 << 20
# The directories that Spark writes into while a query runs.
_WRITTEN_TO = ("", "offsets", "commits", "state", "sources")


def checkpoint_of(settings: Settings) -> Path:
    """Return ``checkpoint.dir``, or if that is empty a place that no other bus uses."""
    if settings.checkpoint_dir:
        return Path(settings.checkpoint_dir).absolute()
    file = Path(files_name(settings.bus)).absolute()
    return file.with_name(file.name + SUFFIX)


def stacks_file(checkpoint: Path) -> Path:
    """Return the file to which Spark logs the stack of the error that ended a query."""
    return checkpoint.with_name(checkpoint.name + ".spark.log")


def check_usable(checkpoint: Path) -> None:
    """Raise ``OSError`` if a checkpoint here could not be written or could not be moved aside.

    The checkpoint itself stays as it is, because a running job may use it.
    """
    private_dir(checkpoint.parent)
    _write_and_rename(checkpoint.parent)
    if not checkpoint.exists():
        return
    if not checkpoint.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "it is a file, but must be a directory", str(checkpoint))
    if checkpoint.is_mount():
        raise OSError(
            errno.EBUSY, "it is a mount point, which cannot be moved aside: name a directory in it", str(checkpoint)
        )
    for name in _WRITTEN_TO:
        directory = checkpoint / name
        if directory.exists() and not os.access(directory, os.R_OK | os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(directory))


def _write_and_rename(directory: Path) -> None:
    descriptor, name = tempfile.mkstemp(prefix=".probe-", dir=directory)
    try:
        with open(descriptor, "wb") as file:
            file.write(bytes(PROBE_BYTES))
            file.flush()
            os.fsync(file.fileno())
        os.rename(name, f"{name}-aside")
        name = f"{name}-aside"
    finally:
        os.unlink(name)
