"""The table in which an embedded bus keeps the pages of the state, and the comparison of a repeated batch."""

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

from bus import former_pages, pieces
from bus.interface import Decided, DivergedError, Page
from isrflow.sqlite import checksums, decision_table
from state.codec import holds_the_same


def write_pages(connection: sqlite3.Connection, pages: Sequence[Page]) -> None:
    """Write changed pages over their former versions, which the newest snapshot may need."""
    written = list(pieces.cut(pages))
    former_pages.keep(connection, [(page.shard, page.page) for page in written])
    connection.executemany("INSERT OR REPLACE INTO pages VALUES (?, ?, ?, ?)", checksums.with_crc(written))


def replace_pages(connection: sqlite3.Connection, pages: Sequence[Page]) -> None:
    """Put ``pages`` in the place of all pages."""
    former_pages.keep_all(connection)
    connection.execute("DELETE FROM pages")
    write_pages(connection, pages)


def read_pages(connection: sqlite3.Connection, path: Path) -> list[Page]:
    """Return all pages whole. Raises ``DamagedError``."""
    rows = connection.execute("SELECT shard, page, body, crc FROM pages")
    return pieces.joined(
        Page(shard, page, checksums.check(body, crc, f"bus {path}: page ({shard}, {page}) of the state"))
        for shard, page, body, crc in rows
    )


def check_same_pages(connection: sqlite3.Connection, pages: Sequence[Page], path: Path) -> None:
    """Raise ``DivergedError`` if one of ``pages`` differs from what is written."""
    for page in pages:
        written = pieces.joined(_pieces(connection, page))
        if not written or not holds_the_same(written[0].body, page.body):
            raise DivergedError(f"bus {path}: page ({page.shard}, {page.page}) of the state came out differently")


def _pieces(connection: sqlite3.Connection, page: Page) -> Iterator[Page]:
    for place in pieces.places(page):
        row = connection.execute("SELECT body FROM pages WHERE shard = ? AND page = ?", place).fetchone()
        if row is None:
            return
        yield Page(*place, row[0])


def check_same_decisions(connection: sqlite3.Connection, decisions: Sequence[Decided], path: Path) -> None:
    """Raise ``DivergedError`` if one of ``decisions`` differs from what is written."""
    written = decision_table.bodies_at(connection, (one[:2] for one in decisions), f"bus {path}")
    for decided, body in zip(decisions, written, strict=True):
        if body != decided.body:
            raise DivergedError(f"bus {path}: decision ({decided.seq}, {decided.idx}) came out differently")
