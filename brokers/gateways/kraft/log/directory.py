"""The directory of a metadata log: locked by one process, and changed in steps that a crash may interrupt anywhere.

A log that replaces another is built in ``rebuilt.part`` and renamed to ``rebuilt`` once it is whole. Then the former
files move aside, ``rebuilt`` is renamed to ``placing``, and its files move up one by one. The next start finishes what
a crash interrupted.
"""

import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from brokers import files
from brokers.gateways.kraft.log.errors import StorageError
from conf.private_dir import private_dir
from conf.whole_file import flush_directory

LOCK = ".lock"
UNFINISHED, REBUILT, PLACING = "rebuilt.part", "rebuilt", "placing"
_ASIDE = re.compile(r"aside-([0-9]+)")
# The segments, the ends files beside them, and the snapshots. Other files may lie there too, such as the audit log.
_OF_LOG = re.compile(r"[0-9]{20}[.-].*")
# If logs are damaged more often than this, the disk is failing, and an operator must look at it.
ASIDE_MAX = 20


def locked(directory: Path) -> BinaryIO:
    """Lock a directory for this process, until the file is closed or the process ends.

    Raises ``StorageError`` when another process has the lock.
    """
    private_dir(directory)
    try:
        return files.locked(directory / LOCK)
    except BlockingIOError as error:
        raise StorageError(f"{directory} is in use by another gateway") from error


def start_replacement(directory: Path) -> Path:
    """Make an empty directory for a log that is to replace the present one."""
    unfinished = directory / UNFINISHED
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    return unfinished


def finish_replacement(directory: Path) -> None:
    """Finish what a crash interrupted: remove a half-built log, or put a whole one into its place."""
    shutil.rmtree(directory / UNFINISHED, ignore_errors=True)
    if (directory / REBUILT).exists():
        set_aside(directory)
        (directory / REBUILT).replace(directory / PLACING)
        flush_directory(directory)
    if (directory / PLACING).exists():
        for path in sorted((directory / PLACING).iterdir()):
            if _OF_LOG.fullmatch(path.name):
                path.replace(directory / path.name)
        flush_directory(directory)
        shutil.rmtree(directory / PLACING)


def install_replacement(directory: Path) -> None:
    """Put the log from ``start_replacement`` in the place of the present one, which is set aside."""
    unfinished = directory / UNFINISHED
    flush_directory(unfinished)
    unfinished.replace(directory / REBUILT)
    flush_directory(directory)
    finish_replacement(directory)


def set_aside(directory: Path, only: Path | None = None) -> Path | None:
    """Move the files of a log, or only one of them, into a new directory, and return it; None if there are none.

    Raises ``StorageError`` when that was done too often.
    """
    # A directory in the place of a file is as damaged as a damaged file.
    held = [path for path in directory.iterdir() if _OF_LOG.fullmatch(path.name)]
    files = [path for path in held if only in (None, path)]
    if not files:
        return None
    aside = _next_aside(directory)
    # If a crash leaves some of them behind, in this order they form a damaged log, which the next start sets aside.
    for path in sorted(files, key=lambda file: (file.suffix == ".log", file.suffix != ".ends", file.name)):
        path.replace(aside / path.name)
    flush_directory(aside)
    flush_directory(directory)
    return aside


def copy_aside(directory: Path, files: Sequence[Path]) -> None:
    """Keep a copy of files that are about to be cut. Raises ``StorageError`` when that was done too often."""
    aside = _next_aside(directory)
    for path in files:
        shutil.copyfile(path, aside / path.name)


def _next_aside(directory: Path) -> Path:
    taken = [int(match[1]) for path in directory.iterdir() if (match := _ASIDE.fullmatch(path.name))]
    if len(taken) >= ASIDE_MAX:
        raise StorageError(
            f"{directory} holds {len(taken)} logs that were set aside: its disk may be failing. "
            "Move them to another place once the disk is known to be sound"
        )
    aside = directory / f"aside-{max(taken, default=0) + 1}"
    aside.mkdir()
    return aside
