"""The cache of files that can be made or fetched again: launchers and jars."""

import os
import stat
import tempfile
from functools import cache
from pathlib import Path

VARIABLE = "ISRFLOW_CACHE"


def cache_dir() -> Path:
    """Return the cache folder, or a temporary folder if the cache cannot be written.

    ``ISRFLOW_CACHE`` names the folder. Otherwise it is in ``XDG_CACHE_HOME`` or ``~/.cache``.
    """
    return _chosen_dir() or _temporary_dir(os.getuid())


def cache_is_temporary() -> bool:
    """Check whether the cache cannot be written, so that a temporary folder takes its place."""
    return _chosen_dir() is None


def _chosen_dir() -> Path | None:
    try:
        chosen = os.environ.get(VARIABLE)
        folder = (
            Path(chosen) if chosen else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "isrflow"
        )
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except (OSError, RuntimeError):
        pass
    return None


@cache
def _temporary_dir(user: int) -> Path:
    """Return one folder for all processes of a user, because they would fill the disk with one each."""
    folder = Path(tempfile.gettempdir()) / f"isrflow-cache-{user}"
    try:
        folder.mkdir(mode=stat.S_IRWXU, exist_ok=True)
        found = folder.lstat()
        # Any user may make a folder of that name, and files in the cache are run.
        is_ours = found.st_uid == user and not found.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
        if stat.S_ISDIR(found.st_mode) and is_ours:
            return folder
    except OSError:
        pass
    return Path(tempfile.mkdtemp(prefix="isrflow-cache-"))
