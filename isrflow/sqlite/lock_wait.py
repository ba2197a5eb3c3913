"""Wait for a file that another process has locked: with a log line, and with an end."""

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from isrflow.errors import BusError
from isrflow.warning import warn

# How long commands and brokers wait for a locked file. The engine waits for ``sqlite.lock.timeout.ms``.
LOCK_TIMEOUT_S = 20.0
# The wait is logged each time that this much of it has passed.
LOCK_TOLD_S = 5.0
_LOCKED = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})

T = TypeVar("T")


def while_locked(path: Path, timeout_s: float, call: Callable[[], T]) -> T:
    """Return the result of ``call`` once no other process locks the file. Raises ``BusError`` after ``timeout_s``."""
    begun_s = time.monotonic()
    while True:
        try:
            return call()
        except sqlite3.OperationalError as error:
            waited_s = time.monotonic() - begun_s
            # Errors that Python itself raises have no code.
            if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _LOCKED:
                raise
            if waited_s >= timeout_s:
                raise BusError(
                    f"bus {path}: another process has kept it locked for {waited_s:.0f} s: 'fuser {path}' shows it"
                ) from error
            warn(
                "another process has the bus locked; waiting",
                bus=str(path),
                waited_s=round(waited_s),
                lock_timeout_s=round(timeout_s),
            )
