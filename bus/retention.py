"""Remove what retention no longer keeps, a slice at a time, and keep the log beside the file short.

What goes in one transaction goes through the write-ahead log as a whole, and nobody else writes meanwhile: so
a slice is small, and the marks in it say where the next one begins, in this process or after a kill.
"""

import contextlib
import sqlite3
from pathlib import Path

from bus.telling import warn

SLICE_ROWS = 10_000
SLICE_BYTES = 4 * 1024 * 1024
# A reader that stays where it is keeps the log from beginning again; above this it is asked for.
WAL_BYTES_MAX = 64 * 1024 * 1024
# Whoever waits for readers to be gone keeps writers out.
_CHECKPOINT_WAIT_MS = 50


def remove_decisions(connection: sqlite3.Connection, through: int, rows_max: int) -> tuple[int, int, int] | None:
    """Remove the first slice of the decisions of events up to ``through``; None when there is none left.

    Returns how many went, and the (seq, index) of the last of them.
    """
    rows = connection.execute(
        "SELECT seq, idx, length(body) FROM decisions WHERE seq <= ? ORDER BY seq, idx LIMIT ?", (through, rows_max)
    )
    count, size, last = 0, 0, (0, 0)
    for seq, idx, length in rows:
        count, size, last = count + 1, size + length, (seq, idx)
        if size >= SLICE_BYTES:
            break
    if not count:
        return None
    connection.execute("DELETE FROM decisions WHERE (seq, idx) <= (?, ?)", last)
    return count, *last


def remove_events(connection: sqlite3.Connection, through: int, rows_max: int) -> tuple[int, int] | None:
    """Remove the first slice of the events up to ``through``; None when there is none left.

    Returns how many went, and the seq of the last of them.
    """
    rows = connection.execute(
        "SELECT seq, length(raw) FROM events WHERE seq <= ? ORDER BY seq LIMIT ?", (through, rows_max)
    )
    count, size, last = 0, 0, 0
    for seq, length in rows:
        count, size, last = count + 1, size + length, seq
        if size >= SLICE_BYTES:
            break
    if not count:
        return None
    connection.execute("DELETE FROM events WHERE seq <= ?", (last,))
    return count, last


def bound_wal(path: Path, connection: sqlite3.Connection, busy_timeout_ms: int) -> None:
    """Move a log that is too long into the file, and let it begin again; where a reader is in the way, say so."""
    size = wal_bytes(path)
    if size <= WAL_BYTES_MAX:
        return
    connection.execute(f"PRAGMA busy_timeout = {_CHECKPOINT_WAIT_MS}")
    try:
        (in_the_way, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    finally:
        connection.execute(f"PRAGMA busy_timeout = {busy_timeout_ms}")
    if in_the_way:
        warn("the log beside the bus grows while another process reads", log=f"{path}-wal", log_bytes=size)


def wal_bytes(path: Path) -> int:
    """Tell how long the log beside a file is."""
    with contextlib.suppress(FileNotFoundError):
        return Path(f"{path}-wal").stat().st_size
    return 0
