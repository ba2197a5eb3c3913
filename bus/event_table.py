"""The embedded bus's table of events: when each entered, and which are claims.

Files of before have no column of entry times; an isrflow of before goes on with one that has, and leaves it empty.
"""

import sqlite3
from collections.abc import Sequence

from isrflow.bus.clock import now_ms
from isrflow.bus.interface import Entry
from isrflow.bus.patience import Row, row_of

_COLUMN = "entered_ms"


def has_times(connection: sqlite3.Connection) -> bool:
    """Say whether the table keeps entry times."""
    return any(row[1] == _COLUMN for row in connection.execute("PRAGMA table_info(events)"))


def keep_times(connection: sqlite3.Connection) -> None:
    """Let the table keep entry times from now on; in a write transaction, because another process may do so too."""
    if not has_times(connection):
        connection.execute(f"ALTER TABLE events ADD COLUMN {_COLUMN} INTEGER")


def append(connection: sqlite3.Connection, rows: Sequence[Row]) -> int:
    """Append events that enter now, and return the last one's seq.

    In a write transaction: so entry times follow the order, as far as the machine's clock goes on.
    """
    entered_ms = now_ms()
    connection.executemany(
        "INSERT INTO events (kind, patient, raw, entered_ms) VALUES (?, ?, ?, ?)", [(*row, entered_ms) for row in rows]
    )
    return int(connection.execute("SELECT max(seq) FROM events").fetchone()[0])


def insert_recorded(connection: sqlite3.Connection, entries: Sequence[Entry]) -> None:
    """Put a recorded log into the table, with its own seqs, entry times, and what it says of claims."""
    connection.execute(
        "CREATE TABLE IF NOT EXISTS recorded_claims (seq INTEGER PRIMARY KEY, is_claim INTEGER NOT NULL)"
    )
    connection.executemany(
        "INSERT INTO events (seq, kind, patient, raw, entered_ms) VALUES (?, ?, ?, ?, ?)",
        [(entry.seq, *row_of(entry.raw), entry.entered_ms) for entry in entries],
    )
    told = [(entry.seq, entry.is_claim) for entry in entries if entry.is_claim is not None]
    connection.executemany("INSERT INTO recorded_claims VALUES (?, ?)", told)


def entries_between(connection: sqlite3.Connection, after: int, through: int) -> list[Entry]:
    """Read events in order; whether one is a claim says the table of claims, or the recorded log that was put here."""
    span = (after, through)
    column = _COLUMN if has_times(connection) else "NULL"
    rows = connection.execute(f"SELECT seq, raw, {column} FROM events WHERE seq > ? AND seq <= ? ORDER BY seq", span)
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'recorded_claims'").fetchone():
        told = connection.execute("SELECT * FROM recorded_claims WHERE seq > ? AND seq <= ?", span)
        is_claim = {seq: bool(value) for seq, value in told}
        return [Entry(seq, raw, entered_ms, is_claim.get(seq)) for seq, raw, entered_ms in rows]
    claims = {row[0] for row in connection.execute("SELECT seq FROM claims WHERE seq > ? AND seq <= ?", span)}
    return [Entry(seq, raw, entered_ms, seq in claims) for seq, raw, entered_ms in rows]
