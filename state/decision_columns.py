"""Columns: decisions of one kind on one event, as numbers.

The problem: a lost broker leads to hundreds of thousands of decisions, whose texts differ in a few numbers. To write
these texts, to carry them to the bus and to compress them costs more than to decide.

The insight: decisions that are alike share a pattern (``state.alike``), which is a text with six blanks. What is left
of a decision is the number of its pattern and what fills the blanks, and the index follows from the place in the run.
So a run is a few columns of numbers, and a line of text is made for those who ask. One set of columns holds many
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
from functools import lru_cache
from itertools import accumulate, repeat
from typing import NamedTuple

# A blank that shows nothing, whatever fills it.
SILENT = b"%.0a"
# The most rows of one set of columns: as many as a block of the decision log holds. A row of Spark's has a bound too.
ROWS_MAX = 4_096
# Bytes of a row: its partition, text, leader epoch and last value.
ROW_BYTES = 20


@lru_cache
def _layout(rows: int) -> struct.Struct:
    return struct.Struct(f"<{3 * rows}i{rows}q")


def packed(partitions: list[int], texts: list[int], leader_epochs: list[int], last_values: list[int]) -> bytes:
    """Return the bytes of columns: three of 32-bit numbers, and the last one of 64-bit numbers. Little-endian.

    Raises ``struct.error`` if a number does not fit.
    """
    return _layout(len(partitions)).pack(*partitions, *texts, *leader_epochs, *last_values)


class CountedBy(NamedTuple):
    """What decisions are counted by: the reason, and of an election whether it was unclean or passed replicas over."""

    reason: str
    unclean: bool
    passes_over: bool


class ReasonCount(NamedTuple):
    """How many decisions of a run have the same reason and are alike in what elections say."""

    reason: str
    unclean: bool
    passes_over: bool
    decisions: int


class Columns(NamedTuple):
    """The decisions of a run."""

    # Each has blanks for the index, topic, topic id, partition, leader epoch and last value, in this order. The last
    # value is a partition epoch or a high watermark. A blank that a text has no use for is ``SILENT``.
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
        """The number of decisions."""
        return len(self.numbers) // ROW_BYTES

    @property
    def first_partition(self) -> int:
        """The partition of the first decision."""
        return int(struct.unpack_from("<i", self.numbers)[0])

    def partitions(self) -> tuple[int, ...]:
        """Return the partition of each decision."""
        return struct.unpack_from(f"<{self.decision_count}i", self.numbers)

    def places(self) -> tuple[int, ...]:
        """Return the place of each decision's text."""
        rows = self.decision_count
        return struct.unpack_from(f"<{rows}i", self.numbers, 4 * rows)

    def starts(self) -> list[int]:
        """Return how many decisions come before each topic, and at last of all."""
        return list(accumulate(self.counts, initial=0))

    def reasons(self) -> tuple[ReasonCount, ...]:
        """Count the decisions by what is told of them, in order."""
        if len(set(self.told)) == 1:
            return (ReasonCount(*self.told[0], self.decision_count),)
        counted: Counter[CountedBy] = Counter()
        for place, count in Counter(self.places()).items():
            counted[self.told[place]] += count
        return tuple([ReasonCount(*told, count) for told, count in sorted(counted.items())])

    def lines(self, idx: int) -> Iterator[bytes]:
        """Yield the text of each decision, of which the first one has the index ``idx``."""
        rows, texts = self.decision_count, self.texts
        values = _layout(rows).unpack(self.numbers)
        partitions, places = values[:rows], values[rows : 2 * rows]
        leader_epochs, last_values = values[2 * rows : 3 * rows], values[3 * rows :]
        nth = 0
        for topic, topic_id, count in zip(self.names[::2], self.names[1::2], self.counts, strict=True):
            some = slice(nth, nth + count)
            values_of_some = zip(
                range(idx + nth, idx + nth + count),
                repeat(topic, count),
                repeat(topic_id, count),
                partitions[some],
                leader_epochs[some],
                last_values[some],
                strict=True,
            )
            for text, blanks in zip(places[some], values_of_some, strict=True):
                yield texts[text] % blanks
            nth += count
