"""The place of a bus's checkpoint, and whether a job could keep one there."""

import contextlib
import errno
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bus.open_bus import files_name
from conf.place_uri import is_uri
from conf.private_dir import private_dir
from conf.settings import Settings
from streaming.hadoop_path import HadoopPath
from streaming.job_errors import JobError

# A path on this machine is reached without Spark. Everything with a scheme, file: too, is reached through Hadoop.
Checkpoint = Path | HadoopPath
SUFFIX = ".checkpoint"
# About as much as a small batch writes.
PROBE_BYTES = 1 << 20
# The directories that Spark writes into while a query runs.
_WRITTEN_TO = ("", "offsets", "commits", "state", "sources")


def checkpoint_of(settings: Settings) -> Checkpoint:
    """Return ``checkpoint.dir``; if it is empty, a place that no other bus has."""
    if is_uri(settings.checkpoint_dir):
        return HadoopPath(settings.checkpoint_dir)
    return files_place(settings)


def files_place(settings: Settings) -> Path:
    """Return the path that the files of a job on this machine begin with: its lock, its stacks, its local directory.

    That is the checkpoint itself, if it is on this machine, and otherwise a place that no other bus has. If the
    checkpoint is a link, it is the directory that the link leads to. Otherwise the link would be moved aside, and the
    next checkpoint would be on the link's disk. And jobs that use different names would not see each other's lock.
    """
    is_here = settings.checkpoint_dir and not is_uri(settings.checkpoint_dir)
    return Path(os.path.realpath(settings.checkpoint_dir if is_here else files_name(settings.bus) + SUFFIX))


def stacks_file(place: Path) -> Path:
    """Return the file in which Spark keeps the stacks of what ended a query."""
    return place.with_name(place.name + ".spark.log")


@contextlib.contextmanager
def usable(checkpoint: Checkpoint) -> Iterator[None]:
    """Turn an ``OSError`` in the block into a ``JobError`` that names the checkpoint."""
    try:
        yield
    except OSError as error:
        where = error.filename or checkpoint
        raise JobError(
            f"checkpoint {checkpoint} cannot be used: {where}: {error.strerror or error}; "
            "name another place in checkpoint.dir"
        ) from error


def check_usable(checkpoint: Checkpoint) -> None:
    """Raise ``OSError`` if a checkpoint could not be written, or not be moved aside.

    The checkpoint itself stays as it is, because a running job may use it.
    """
    if isinstance(checkpoint, HadoopPath):
        _check_through_hadoop(checkpoint)
    else:
        _check_here(checkpoint)


def _check_through_hadoop(checkpoint: HadoopPath) -> None:
    probe = checkpoint.with_name(f".probe-{os.getpid()}-{os.urandom(4).hex()}")
    aside = probe.with_name(f"{probe.name}-aside")
    try:
        probe.write_bytes(bytes(PROBE_BYTES))
        probe.rename(aside)
    finally:
        for left in (probe, aside):
            left.remove()


def _check_here(checkpoint: Path) -> None:
    private_dir(checkpoint.parent)
    _write_and_rename(checkpoint.parent)
    if not checkpoint.exists():
        return
    if not checkpoint.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "it is a file, but must be a directory", str(checkpoint))
    if checkpoint.is_mount():
        raise OSError(
            errno.EBUSY, "it is a mount point, which cannot be moved aside: a directory in it can", str(checkpoint)
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
