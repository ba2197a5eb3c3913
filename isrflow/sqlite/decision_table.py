"""The table of decisions in the file of an embedded bus, whose rows are decisions or blocks of them."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence

from isrflow.column_blocks import DecidedColumns
from isrflow.contract import Decided
from isrflow.decision_blocks import HEAD_BYTES, count_of
from isrflow.decision_rows import OpenedRow, RowReader, opened, within
from isrflow.sqlite import checksums

# In SQL: what ``count_of`` needs of a body.
HEAD = f"substr(body, 1, {HEAD_BYTES})"


def write(connection: sqlite3.Connection, rows: Sequence[Decided]) -> None:
    """Append rows of decisions."""
    connection.executemany("INSERT INTO decisions VALUES (?, ?, ?, ?)", checksums.with_crc(rows))


def read_after(
    connection: sqlite3.Connection, after: tuple[int, int], limit: int, bytes_max: int, reader: RowReader
) -> list[Decided]:
    """Return up to ``limit`` decisions after a place, with up to ``bytes_max`` bytes, but at least one.

    Raises ``DamagedError``, which names the bus of ``reader``.
    """
    found: list[Decided] = []
    size = 0
    for row in _rows_after(connection, after, limit, reader.bus):
        some = reader.after(row, after, limit - len(found))
        size += sum([len(one.body) for one in some])
        found += some
        if size > bytes_max:
            return within(found, bytes_max)
        if len(found) == limit:
            break
    return found


def read_columns_after(
    connection: sqlite3.Connection, after: tuple[int, int], limit: int, bytes_max: int, reader: RowReader
) -> list[Decided | DecidedColumns]:
    """Return the decisions after a place, with blocks of columns as they are.

    The last row is the first that reaches ``limit`` decisions or exceeds ``bytes_max``. Raises ``DamagedError``, which
    names the bus of ``reader``.
    """
    return reader.columns(_rows_after(connection, after, limit, reader.bus), after, limit, bytes_max)


def _rows_after(connection: sqlite3.Connection, after: tuple[int, int], limit: int, bus: str) -> Iterator[Decided]:
    """Yield up to ``limit`` rows from the one that holds the decision after a place. Raises ``DamagedError``."""
    rows = connection.execute(
        "SELECT seq, idx, body, crc FROM decisions WHERE (seq, idx) > (?, ?) ORDER BY seq, idx LIMIT ?",
        (*_before_row(connection, after), limit),
    )
    for seq, idx, body, crc in rows:
        checksums.check(body, crc, f"{bus}: decision ({seq}, {idx})")
        yield Decided(seq, idx, body)


def _before_row(connection: sqlite3.Connection, after: tuple[int, int]) -> tuple[int, int]:
    """Return the place after which to read rows. The row at or before ``after`` may be a block that goes on."""
    seq, idx = after
    row = connection.execute(
        f"SELECT idx, {HEAD} FROM decisions WHERE seq = ? AND idx <= ? ORDER BY idx DESC LIMIT 1", after
    ).fetchone()
    goes_on = row is not None and row[0] + count_of(row[1]) - 1 > idx
    return (seq, row[0] - 1) if goes_on else after


def bodies_at(connection: sqlite3.Connection, places: Iterable[tuple[int, int]], bus: str) -> Iterator[bytes | None]:
    """Yield the text of the decision at each place; None if there is none. Raises ``DamagedError``."""
    held: OpenedRow | None = None
    for seq, idx in places:
        if held is None or held.row.seq != seq or not held.row.idx <= idx < held.row.idx + held.decision_count:
            row = connection.execute(
                "SELECT seq, idx, body FROM decisions WHERE seq = ? AND idx <= ? ORDER BY idx DESC LIMIT 1", (seq, idx)
            ).fetchone()
            if row is None:
                yield None
                continue
            held = opened(Decided(*row), bus)
        found = held.decisions(idx, 1)
        yield found[0].body if found else None


def newest(connection: sqlite3.Connection) -> tuple[int, int] | None:
    """Return the place of the newest decision; None if there is none."""
    row = connection.execute(f"SELECT seq, idx, {HEAD} FROM decisions ORDER BY seq DESC, idx DESC LIMIT 1").fetchone()
    return None if row is None else (int(row[0]), int(row[1]) + count_of(row[2]) - 1)
