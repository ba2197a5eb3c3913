"""Columns: decisions of one kind on one event, as numbers.

The problem: a lost broker leads to hundreds of thousands of decisions, whose texts differ in a few numbers. To write
these texts, to carry them to the bus and to compress them costs more than to decide.

The insight: decisions that are alike on the same brokers (``state.alike``) share a text with six blanks. What is left
of a decision is the number of its text and what fills the blanks, and the index follows from the place in the run.
So a run is a few columns of numbers, and lines of text are made on demand. One set of columns holds many
topics, because in a storm each event changes a few partitions of each.

    texts   0  {"kind":"leader_and_isr", … "index":%d, … "topic":%b,"topic_id":%b,"partition":%d, … "leader":2, …
            1  {"kind":"leader_and_isr", … "index":%d, … "topic":%b,"topic_id":%b,"partition":%d, … "leader":3, …

    topics             a         b
    counts             2         2
    partition          0    3    8    11         line 2 is texts[0] % (first index + 2, b, id of b, 8, 5, 9)
    text               0    1    0    1
    leader epoch       4    4    5    4
    last value         8    6    9    6
"""

import struct
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

from isrflow.column_layout import BLANKS as BLANKS

# Buses and users' programs read the same layout.
from isrflow.column_layout import ROW_BYTES, ColumnTable
from isrflow.column_layout import ROWS_MAX as ROWS_MAX
from isrflow.column_layout import SILENT as SILENT
from isrflow.column_layout import packed as packed


class CountedBy(NamedTuple):
    """What decisions are counted by: the reason, and of an election whether it was unclean or passed replicas over."""

    reason: str
    unclean: bool
    passes_over: bool


class ReasonCount(NamedTuple):
    """How many decisions of a run are counted by the same values."""

    reason: str
    unclean: bool
    passes_over: bool
    decisions: int


class Columns(NamedTuple):
    """The decisions of a run."""

    # Each has the blanks of ``column_layout``.
    texts: list[bytes]
    # Of each text.
    told: list[CountedBy]
    # In order. A topic with very many decisions comes several times.
    topics: list[str]
    # Of each topic: its name, then its id, as they are in a decision's text.
    names: list[bytes]
    # Of each topic: how many decisions are about it.
    counts: list[int]
    # As ``packed`` returns them.
    numbers: bytes

    @property
    def decision_count(self) -> int:
        return len(self.numbers) // ROW_BYTES

    @property
    def first_partition(self) -> int:
        return int(struct.unpack_from("<i", self.numbers)[0])

    def columns(self) -> list[tuple[int, ...]]:
        """Return the partitions, the places of the texts, the leader epochs and the last values."""
        return self._table().columns(0, self.decision_count)

    def partitions(self) -> tuple[int, ...]:
        return self._table().column(0, 0, self.decision_count)

    def places(self) -> tuple[int, ...]:
        """Return the place of each decision's text."""
        return self._table().column(1, 0, self.decision_count)

    def starts(self) -> list[int]:
        """Return how many decisions come before each topic, then how many there are."""
        return list(accumulate(self.counts, initial=0))

    def reasons(self) -> tuple[ReasonCount, ...]:
        """Count the decisions by ``CountedBy``, in its order."""
        if len(set(self.told)) == 1:
            return (ReasonCount(*self.told[0], self.decision_count),)
        counted: Counter[CountedBy] = Counter()
        for place, count in Counter(self.places()).items():
            counted[self.told[place]] += count
        return tuple([ReasonCount(*told, count) for told, count in sorted(counted.items())])

    def _table(self) -> ColumnTable:
        return ColumnTable(self.texts, self.names, self.starts(), self.numbers)

    def lines(self, idx: int) -> Iterator[bytes]:
        """Yield the text of each decision, of which the first one has the index ``idx``."""
        return self._table().lines(idx)
