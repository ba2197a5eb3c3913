"""Older states of an embedded bus, kept page by page.

The problem: copying the state of a large cluster takes longer than any writer may wait, and a kill may come at any
moment. And most of the state does not change between two snapshots.

    seq           10          20          30
    snapshots      *           *
    page 3     one    two         three            pages: three      former: (3, 10) one, (3, 20) two
    page 4     one                                 pages: one

The insight: nothing needs to be copied when a snapshot is taken. The first commit that replaces a page afterwards keeps
the page's former version, under the newest snapshot, in its own transaction. So the page of a snapshot is the first
former version from that snapshot on, or if there is none the page itself. A former version without a body means that
the page did not exist.
"""

import sqlite3
from collections.abc import Iterable

from bus import pieces
from bus.interface import Page, Snapshot
from bus.retention import SLICE_BYTES
from isrflow.sqlite import checksums

TABLES = (
    "CREATE TABLE IF NOT EXISTS snapshots (seq INTEGER PRIMARY KEY, time_ms INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS former_pages (seq INTEGER NOT NULL, shard INTEGER NOT NULL, page INTEGER NOT NULL,"
    " body BLOB, crc INTEGER, PRIMARY KEY (shard, page, seq))",
    "CREATE INDEX IF NOT EXISTS former_pages_by_seq ON former_pages (seq)",
)


def snapshots(connection: sqlite3.Connection) -> list[Snapshot]:
    """Return the snapshots, oldest first."""
    return [Snapshot(*row) for row in connection.execute("SELECT seq, time_ms FROM snapshots ORDER BY seq")]


def take(connection: sqlite3.Connection, snapshot: Snapshot) -> bool:
    """Take a snapshot of the present state. Return False if there is one already."""
    return connection.execute("INSERT OR IGNORE INTO snapshots VALUES (?, ?)", snapshot).rowcount > 0


def keep(connection: sqlite3.Connection, places: Iterable[tuple[int, int]]) -> None:
    """Keep the pages and pieces at ``places``, before they are replaced, for the newest snapshot if it lacks them."""
    (newest,) = connection.execute("SELECT max(seq) FROM snapshots").fetchone()
    if newest is None:
        return
    connection.executemany(
        "INSERT INTO former_pages SELECT ?3, ?1, ?2, page.body, page.crc"
        " FROM (SELECT 1) LEFT JOIN pages AS page ON page.shard = ?1 AND page.page = ?2"
        " WHERE NOT EXISTS (SELECT 1 FROM former_pages WHERE shard = ?1 AND page = ?2 AND seq = ?3)",
        ((shard, page, newest) for shard, page in places),
    )


def keep_all(connection: sqlite3.Connection) -> None:
    """Keep all pages, before they are replaced, for the newest snapshot."""
    keep(connection, connection.execute("SELECT shard, page FROM pages").fetchall())


def read(connection: sqlite3.Connection, seq: int, where: str) -> list[Page] | None:
    """Return the pages of the snapshot at ``seq``; None if there is none. Raises ``DamagedError``."""
    if not any(snapshot.seq == seq for snapshot in snapshots(connection)):
        return None
    rows = connection.execute(
        "SELECT shard, page, body, crc FROM (SELECT shard, page, body, crc, min(seq) FROM former_pages"
        " WHERE seq >= ?1 GROUP BY shard, page) WHERE body IS NOT NULL"
        " UNION ALL SELECT shard, page, body, crc FROM pages AS page WHERE NOT EXISTS"
        " (SELECT 1 FROM former_pages WHERE shard = page.shard AND page = page.page AND seq >= ?1)",
        (seq,),
    )
    what = f"bus {where}: the snapshot at seq {seq}"
    return pieces.joined(Page(shard, page, checksums.check(body, crc, what)) for shard, page, body, crc in rows)


def drop(connection: sqlite3.Connection, before: int, rows_max: int) -> int:
    """Remove the snapshots before the seq ``before``, and a slice of the pages that only they had.

    Returns the number of removed snapshots and pages.
    """
    gone = connection.execute("DELETE FROM snapshots WHERE seq < ?", (before,)).rowcount
    (oldest,) = connection.execute("SELECT coalesce(min(seq), ?) FROM snapshots", (before,)).fetchone()
    rows = connection.execute(
        "SELECT rowid, coalesce(length(body), 0) FROM former_pages WHERE seq < ? LIMIT ?", (oldest, rows_max)
    )
    useless, size = [], 0
    for rowid, length in rows:
        useless.append((rowid,))
        size += length
        if size >= SLICE_BYTES:
            break
    connection.executemany("DELETE FROM former_pages WHERE rowid = ?", useless)
    return gone + len(useless)
