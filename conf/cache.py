"""The cache of files that can be made or fetched again: launchers and jars."""

import os
import tempfile
from functools import cache
from pathlib import Path

VARIABLE = "ISRFLOW_CACHE"


def cache_dir() -> Path:
    """Return the cache folder, or a temporary folder of this process if the cache cannot be written.

    ``ISRFLOW_CACHE`` names the folder. Otherwise it is in ``XDG_CACHE_HOME`` or ``~/.cache``.
    """
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
    return _temporary_dir()


@cache
def _temporary_dir() -> Path:
    return Path(tempfile.mkdtemp(prefix="isrflow-cache-"))
