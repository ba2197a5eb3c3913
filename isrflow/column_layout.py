"""The layout of decisions as columns of numbers, on which rules, buses and users' programs agree.

A decision is a row: its partition, the place of its text and its leader epoch, of 32 bits each, and its last value of
64 bits, which is a partition epoch or a high watermark. The rows stand column by column, little-endian.

A text has a blank for the index, topic, topic id, partition, leader epoch and last value, in this order. Where it has
no use for a value, its blank shows nothing. So any text can be among them.
"""

import struct
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import repeat
from typing import NamedTuple

# A blank that shows nothing, whatever fills it.
SILENT = b"%.0a"
BLANKS = 6
# The most rows of one set of columns: as many as a block of the decision log holds. A row of Spark's has a bound too.
ROWS_MAX = 4_096
ROW_BYTES = 20
# Of each column: a number's form and size, and the bytes of a row before it.
_COLUMNS = (("i", 4, 0), ("I", 4, 4), ("i", 4, 8), ("q", 8, 12))


@lru_cache
def _layout(rows: int) -> struct.Struct:
    return struct.Struct(f"<{3 * rows}i{rows}q")


def packed(
    partitions: Sequence[int], texts: Sequence[int], leader_epochs: Sequence[int], last_values: Sequence[int]
) -> bytes:
    """Return the bytes of columns. Raises ``struct.error`` if a number does not fit."""
    return _layout(len(partitions)).pack(*partitions, *texts, *leader_epochs, *last_values)


class ColumnTable(NamedTuple):
    """Decisions in columns, with what fills their texts."""

    texts: Sequence[bytes]
    # Of each run of decisions about one topic: the topic, then its id, as they are in a text.
    names: Sequence[bytes]
    # How many decisions come before each run, and at last of all.
    starts: Sequence[int]
    body: bytes
    # Where the columns begin.
    offset: int = 0

    @property
    def decision_count(self) -> int:
        """The number of decisions."""
        return self.starts[-1]

    def column(self, nth: int, start: int, stop: int) -> tuple[int, ...]:
        """Return the numbers of one column from place ``start`` to ``stop``. Raises ``ValueError``."""
        kind, size, before = _COLUMNS[nth]
        at = self.offset + before * self.decision_count + size * start
        try:
            return struct.unpack_from(f"<{stop - start}{kind}", self.body, at)
        except struct.error as error:
            raise ValueError(f"a column is damaged: {error}") from error

    def columns(self, start: int, stop: int) -> list[tuple[int, ...]]:
        """Return all four columns from place ``start`` to ``stop``. Raises ``ValueError``."""
        return [self.column(nth, start, stop) for nth in range(len(_COLUMNS))]

    def lines(self, idx: int, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """Yield the texts of the decisions from place ``start`` to ``stop``; the one at place 0 has the index ``idx``.

        Raises ``ValueError`` if they cannot be read.
        """
        stop = self.decision_count if stop is None else min(stop, self.decision_count)
        if stop <= start:
            return
        columns, texts = self.columns(start, stop), self.texts
        run, first = bisect_right(self.starts, start) - 1, start
        try:
            while first < stop:
                end = min(self.starts[run + 1], stop)
                partitions, places, leader_epochs, last_values = [one[first - start : end - start] for one in columns]
                names = [repeat(name, end - first) for name in self.names[2 * run : 2 * run + 2]]
                indexes = range(idx + first, idx + end)
                blanks = zip(indexes, *names, partitions, leader_epochs, last_values, strict=True)
                yield from [texts[place] % values for place, values in zip(places, blanks, strict=True)]
                run, first = run + 1, end
        except (IndexError, TypeError) as error:
            raise ValueError(f"a column is damaged: {error}") from error
