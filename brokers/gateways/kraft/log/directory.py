"""The directory of a metadata log: held by one process, and put in order by steps that a crash may cut anywhere.

A log that takes another one's place is made in ``rebuilt.part`` and is ``rebuilt`` once it is whole. Then the
former files go aside, the directory is ``placing``, and its files are moved up one by one.
"""

import fcntl
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from brokers.files import flush_directory
from brokers.gateways.kraft.log.errors import StorageError
from conf.private_dir import private_dir

LOCK = ".lock"
UNFINISHED, REBUILT, PLACING = "rebuilt.part", "rebuilt", "placing"
_ASIDE = re.compile(r"aside-([0-9]+)")
# Damage that comes again and again is the disk's: then somebody has to look.
ASIDE_MAX = 20


def locked(directory: Path) -> BinaryIO:
    """Hold a directory for this process alone, until the file is closed or the process ends.

    Raises ``StorageError`` when another one holds it.
    """
    private_dir(directory)
    lock = (directory / LOCK).open("ab")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        lock.close()
        raise StorageError(f"{directory} is in use by another gateway") from error
    return lock


def start_replacement(directory: Path) -> Path:
    """Make an empty directory for a log that is to take the place of the one that is there."""
    unfinished = directory / UNFINISHED
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    return unfinished


def finish_replacement(directory: Path) -> None:
    """Finish what a crash cut off: remove half a log, and put a whole one into its place."""
    shutil.rmtree(directory / UNFINISHED, ignore_errors=True)
    if (directory / REBUILT).exists():
        set_aside(directory)
        (directory / REBUILT).replace(directory / PLACING)
        flush_directory(directory)
    if (directory / PLACING).exists():
        for path in sorted((directory / PLACING).iterdir()):
            path.replace(directory / path.name)
        flush_directory(directory)
        (directory / PLACING).rmdir()


def install_replacement(directory: Path) -> None:
    """Let the log that was begun anew take the place of the one that is there, which goes aside."""
    unfinished = directory / UNFINISHED
    (unfinished / LOCK).unlink(missing_ok=True)
    flush_directory(unfinished)
    unfinished.replace(directory / REBUILT)
    flush_directory(directory)
    finish_replacement(directory)


def set_aside(directory: Path, only: Path | None = None) -> Path | None:
    """Move the files of a log, or only one of them, into a directory of their own; None when there are none.

    Raises ``StorageError`` when that was done too often.
    """
    held = [path for path in directory.iterdir() if path.name not in (LOCK, UNFINISHED, REBUILT, PLACING)]
    # A directory that stands where a file should is as damaged as one.
    files = [path for path in held if not _ASIDE.fullmatch(path.name) and only in (None, path)]
    if not files:
        return None
    aside = _next_aside(directory)
    # Where a crash leaves some files behind, they are those of a log that is damaged: it goes aside too.
    for path in sorted(files, key=lambda file: (file.suffix == ".log", file.suffix != ".ends", file.name)):
        path.replace(aside / path.name)
    flush_directory(aside)
    flush_directory(directory)
    return aside


def copy_aside(directory: Path, files: Sequence[Path]) -> None:
    """Keep a copy of files of which a part is to be cut off. Raises ``StorageError`` when that was done too often."""
    aside = _next_aside(directory)
    for path in files:
        shutil.copyfile(path, aside / path.name)


def _next_aside(directory: Path) -> Path:
    taken = [int(match[1]) for path in directory.iterdir() if (match := _ASIDE.fullmatch(path.name))]
    if len(taken) >= ASIDE_MAX:
        raise StorageError(
            f"{directory} holds {len(taken)} logs that were set aside: its disk may be failing. "
            "Remove those that nobody needs"
        )
    aside = directory / f"aside-{max(taken, default=0) + 1}"
    aside.mkdir()
    return aside
