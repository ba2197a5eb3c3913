"""Read decisions from rows of the decision log. A row holds one decision, or a block of many (``decision_blocks``)."""

import contextlib
import zlib
from collections.abc import Iterable, Iterator
from itertools import accumulate, repeat
from typing import NamedTuple

from isrflow import column_blocks
from isrflow.column_blocks import DecidedColumns
from isrflow.contract import Decided
from isrflow.decision_blocks import content_of, is_block
from isrflow.decision_columns import DecisionColumns
from isrflow.errors import DamagedError


class OpenedRow(NamedTuple):
    """A row of the decision log whose decisions can be read. Errors name ``bus``."""

    row: Decided
    content: list[bytes] | DecisionColumns
    bus: str

    def decisions(self, first_idx: int = 0, limit: int | None = None) -> list[Decided]:
        """Return the decisions from an index on, and up to ``limit`` of them. Raises ``DamagedError``."""
        seq, idx, _ = self.row
        start = max(0, first_idx - idx)
        stop = self.decision_count if limit is None else min(self.decision_count, start + limit)
        held = self.content
        with _damage_told(self.row, self.bus):
            bodies = held[start:stop] if isinstance(held, list) else list(held.lines(idx, start, stop))
        first = idx + start
        return list(map(Decided._make, zip(repeat(seq), range(first, first + len(bodies)), bodies, strict=False)))

    @property
    def decision_count(self) -> int:
        """The number of decisions."""
        return len(self.content) if isinstance(self.content, list) else self.content.decision_count


def opened(row: Decided, bus: str) -> OpenedRow:
    """Read a row. Raises ``DamagedError``."""
    if not is_block(row.body):
        return OpenedRow(row, [row.body], bus)
    with _damage_told(row, bus):
        return OpenedRow(row, column_blocks.opened(*content_of(row)), bus)


@contextlib.contextmanager
def _damage_told(row: Decided, bus: str) -> Iterator[None]:
    """Raise ``DamagedError``, which names the ``bus``, if a row cannot be read."""
    try:
        yield
    except (ValueError, zlib.error) as error:
        raise DamagedError(
            f"{bus}: the block of decisions at ({row.seq}, {row.idx}) cannot be read: {error}"
        ) from error


def last_place(read: Decided | DecidedColumns) -> tuple[int, int]:
    """Return the place of the last decision of what was read."""
    count = 1 if isinstance(read, Decided) else read.block.decision_count
    return read.seq, read.idx + count - 1


def within(found: list[Decided], bytes_max: int) -> list[Decided]:
    """Return the first decisions, as many as have at most ``bytes_max`` bytes in total, but always one."""
    ends = accumulate(len(one.body) for one in found)
    return found[: max(1, sum(end <= bytes_max for end in ends))]


class RowReader:
    """A reader of rows in parts. It unpacks a block once while reads stay in that block. Errors name ``bus``.

    Several threads may use one instance.
    """

    def __init__(self, bus: str) -> None:
        self.bus = bus
        self._opened: OpenedRow | None = None

    def after(
        self, row: Decided, place: tuple[int, int], limit: int | None = None, bytes_max: int | None = None
    ) -> list[Decided]:
        """Return the decisions of ``row`` after ``place``, in order: up to ``limit``, and up to ``bytes_max`` bytes.

        ``row`` must have a decision after ``place``. The first one is returned whatever its size. Raises
        ``DamagedError``.
        """
        if not is_block(row.body):
            return [row]
        held = self._opened
        if held is None or held.row != row:
            held = self._opened = opened(row, self.bus)
        found = held.decisions(place[1] + 1 if place[0] == row.seq else 0, limit)
        return found if bytes_max is None else within(found, bytes_max)

    def columns(
        self, rows: Iterable[Decided], after: tuple[int, int], limit: int, bytes_max: int
    ) -> list[Decided | DecidedColumns]:
        """Return the decisions of rows after a place, blocks as they are.

        There are none after the row that reaches ``limit`` decisions or exceeds ``bytes_max``. Raises ``DamagedError``.
        """
        found: list[Decided | DecidedColumns] = []
        count = size = 0
        for row in rows:
            if is_block(row.body) and (row.seq, row.idx) > after:
                with _damage_told(row, self.bus):
                    block = column_blocks.opened(*content_of(row))
                    found.append(DecidedColumns(row.seq, row.idx, block, column_blocks.rows_in(block)))
                count += block.decision_count
                size += block.byte_count
            else:
                some = self.after(row, after)
                found += some
                count += len(some)
                size += sum([len(one.body) for one in some])
            if count >= limit or size > bytes_max:
                break
        return found
