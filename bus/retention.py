"""Remove what retention does not keep, slice by slice, and keep the write-ahead log short.

A transaction goes through the write-ahead log as a whole, and no other process can write until it ends. So a slice is
small. The next slice starts at the first row that is left, in this process or after a kill.
"""

import contextlib
import sqlite3
import time
from pathlib import Path
from typing import NamedTuple

from isrflow.decision_blocks import count_of
from isrflow.sqlite.decision_table import HEAD
from isrflow.sqlite.file_identity import WAL, file_beside
from isrflow.warning import warn

SLICE_ROWS = 10_000
SLICE_BYTES = 4 * 1024 * 1024
# A reader that stays in one transaction prevents the log from starting over. Above this length the bus tries to start
# it over by force.
WAL_BYTES_MAX = 64 * 1024 * 1024
# The pause after an attempt that a reader prevented. A pass has many slices, and each of them would try again.
WAL_PAUSE_S = 30.0
# Short, because writers are locked out during the wait for readers.
_CHECKPOINT_WAIT_MS = 50


def remove_decisions(connection: sqlite3.Connection, through: int, rows_max: int) -> tuple[int, int, int] | None:
    """Remove the first slice of the decisions of events up to ``through``: about ``rows_max``, in whole blocks.

    Returns the number of removed decisions and the (seq, index) of the last one; None if there was none.
    """
    rows = connection.execute(
        f"SELECT seq, idx, length(body), {HEAD} FROM decisions WHERE seq <= ? ORDER BY seq, idx LIMIT ?",
        (through, rows_max),
    )
    count, size, last = 0, 0, (0, 0)
    for seq, idx, length, head in rows:
        of_row = count_of(head)
        count, size, last = count + of_row, size + length, (seq, idx + of_row - 1)
        if size >= SLICE_BYTES or count >= rows_max:
            break
    if not count:
        return None
    connection.execute("DELETE FROM decisions WHERE (seq, idx) <= (?, ?)", last)
    return count, *last


class RemovedEvents(NamedTuple):
    """A slice of removed events."""

    rows: int
    # How many of them thinning had kept.
    rows_thinned: int
    # The seq of the last one.
    last: int


def remove_events(connection: sqlite3.Connection, through: int, rows_max: int, thinned: int) -> RemovedEvents | None:
    """Remove the first slice of the events up to ``through``; None if there was none.

    Events up to ``thinned`` have been thinned already.
    """
    seqs = first_events(connection, -1, through, rows_max)
    if not seqs:
        return None
    connection.execute("DELETE FROM events WHERE seq <= ?", (seqs[-1],))
    return RemovedEvents(len(seqs), sum(seq <= thinned for seq in seqs), seqs[-1])


def first_events(connection: sqlite3.Connection, after: int, through: int, rows_max: int) -> list[int]:
    """Return the seqs of the first slice of the events after ``after``, through ``through``."""
    rows = connection.execute(
        "SELECT seq, length(raw) FROM events WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?",
        (after, through, rows_max),
    )
    seqs, size = list[int](), 0
    for seq, length in rows:
        seqs.append(seq)
        size += length
        if size >= SLICE_BYTES:
            break
    return seqs


class WalBound:
    """The bound on the length of a bus's write-ahead log."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._next_try_s = 0.0

    def enforce(self, connection: sqlite3.Connection, busy_timeout_ms: int) -> None:
        """Move a log that is too long into the file and start it over.

        If a reader prevents that, warn, and do not lock out writers again for ``WAL_PAUSE_S``.
        """
        size = wal_bytes(self._path)
        if size <= WAL_BYTES_MAX or time.monotonic() < self._next_try_s:
            return
        connection.execute(f"PRAGMA busy_timeout = {_CHECKPOINT_WAIT_MS}")
        try:
            (in_the_way, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        finally:
            connection.execute(f"PRAGMA busy_timeout = {busy_timeout_ms}")
        if in_the_way:
            self._next_try_s = time.monotonic() + WAL_PAUSE_S
            warn(
                "the bus's write-ahead log grows because another process keeps reading",
                log=str(file_beside(self._path, WAL)),
                log_bytes=size,
            )


def wal_bytes(path: Path) -> int:
    """Return the length of a file's write-ahead log."""
    with contextlib.suppress(FileNotFoundError):
        return file_beside(path, WAL).stat().st_size
    return 0
