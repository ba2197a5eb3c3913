"""The embedded bus's table of events: their order, when each entered, and which are claims."""

import sqlite3
from collections.abc import Sequence

from bus.interface import Entry
from isrflow.sqlite.checksums import check, with_crc
from isrflow.sqlite.deferrable import row_of
from state.found import Found, found_by, found_ms

_FORGED = "SELECT seq FROM recorded_claims WHERE NOT is_claim"
_TELLS = "kind = 'tick' AND instr(raw, CAST('decided_seq' AS BLOB))"
# The newest tick of this bus's engines that tells what is undecided.
_NEWEST_TELLING = "(SELECT value FROM marks WHERE name = 'told')"


def insert_recorded(connection: sqlite3.Connection, entries: Sequence[Entry]) -> None:
    """Insert a recorded log as it is: with its seqs, entry times and claims."""
    connection.execute(
        "CREATE TABLE IF NOT EXISTS recorded_claims (seq INTEGER PRIMARY KEY, is_claim INTEGER NOT NULL)"
    )
    connection.executemany(
        "INSERT INTO events (seq, entered_ms, kind, patient, raw, crc) VALUES (?, ?, ?, ?, ?, ?)",
        with_crc((entry.seq, entry.entered_ms, *row_of(entry.raw)) for entry in entries),
    )
    known = [(entry.seq, entry.is_claim) for entry in entries if entry.is_claim is not None]
    connection.executemany("INSERT INTO recorded_claims VALUES (?, ?)", known)


def has_kind(connection: sqlite3.Connection, kind: str, after: int) -> bool:
    """Return whether there is an event of a kind after ``after``."""
    found = connection.execute("SELECT EXISTS (SELECT 1 FROM events WHERE seq > ? AND kind = ?)", (after, kind))
    return bool(found.fetchone()[0])


def newest_of(connection: sqlite3.Connection, kind: str, after: int) -> int:
    """Return the seq of the newest event of a kind after ``after``, 0 if there is none."""
    found = connection.execute("SELECT coalesce(max(seq), 0) FROM events WHERE seq > ? AND kind = ?", (after, kind))
    return int(found.fetchone()[0])


def entries_between(connection: sqlite3.Connection, after: int, through: int) -> list[Entry]:
    """Return the events in order. The table of claims, or the recorded log, says which ones are claims."""
    span = (after, through)
    stored = connection.execute(
        "SELECT seq, raw, entered_ms, crc FROM events WHERE seq > ? AND seq <= ? ORDER BY seq", span
    )
    rows = ((seq, check(raw, crc, f"event {seq}"), entered_ms) for seq, raw, entered_ms, crc in stored)
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'recorded_claims'").fetchone():
        known = connection.execute("SELECT * FROM recorded_claims WHERE seq > ? AND seq <= ?", span)
        is_claim = {seq: bool(value) for seq, value in known}
        found = _found(connection, after, f"kind = 'controller_started' AND seq NOT IN ({_FORGED})")
        found += _found(connection, after, _TELLS)
        return [Entry(seq, raw, ms, is_claim.get(seq), found_ms(seq, found)) for seq, raw, ms in rows]
    claims = {row[0] for row in connection.execute("SELECT seq FROM claims WHERE seq > ? AND seq <= ?", span)}
    found = _found(connection, after, "seq IN (SELECT seq FROM claims WHERE seq > ?1)")
    found += _found(connection, after, f"seq <= {_NEWEST_TELLING} AND {_TELLS}")
    return [Entry(seq, raw, ms, seq in claims, found_ms(seq, found)) for seq, raw, ms in rows]


def _found(connection: sqlite3.Connection, after: int, which: str) -> list[Found]:
    """Return what was found undecided after ``after``. Claims and ticks that say so come later, at any distance."""
    rows = connection.execute(f"SELECT seq, raw, entered_ms FROM events WHERE seq > ?1 AND {which}", (after,))
    return [found for seq, raw, ms in rows if (found := found_by(seq, raw, ms)) is not None]
