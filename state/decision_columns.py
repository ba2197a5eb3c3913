"""Columns: the decisions of one kind on one event about one topic, as numbers.

The problem: a lost broker leads to hundreds of thousands of decisions, whose texts differ in a few numbers. To write
these texts, to carry them to the bus and to compress them costs more than to decide.

The insight: decisions that are alike share a pattern (``state.alike``), which is a text with six blanks. What is left
of a decision is the number of its pattern and what fills the blanks, and the index follows from the place in the run.
So a run is a few columns of numbers, and a line of text is made for those who ask.

    texts   0  {"kind":"leader_and_isr", … "index":%d, … "topic":%b,"topic_id":%b,"partition":%d, … "leader":2, …
            1  {"kind":"leader_and_isr", … "index":%d, … "topic":%b,"topic_id":%b,"partition":%d, … "leader":3, …

    partition          0    3    8    11         line 2 is texts[0] % (first index + 2, topic, topic_id, 8, 5, 9)
    text               0    1    0    1
    leader epoch       4    4    5    4
    last value         8    6    9    6
"""

import struct
from functools import lru_cache
from typing import NamedTuple

# A blank that shows nothing, whatever fills it.
SILENT = b"%.0a"
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


class Columns(NamedTuple):
    """The decisions of a run. ``texts`` are shared with other runs."""

    # Each has blanks for the index, topic, topic id, partition, leader epoch and last value, in this order. The last
    # value is a partition epoch or a high watermark. A blank that a text has no use for is ``SILENT``.
    texts: list[bytes]
    # As in a decision's text.
    topic: bytes
    topic_id: bytes
    # As ``packed`` returns them.
    numbers: bytes

    def lines(self, idx: int) -> list[bytes]:
        """Return the text of each decision, of which the first one has the index ``idx``."""
        rows = len(self.numbers) // ROW_BYTES
        values = _layout(rows).unpack(self.numbers)
        texts, topic, topic_id = self.texts, self.topic, self.topic_id
        columns = zip(
            range(idx, idx + rows),
            values[:rows],
            values[rows : 2 * rows],
            values[2 * rows : 3 * rows],
            values[3 * rows :],
            strict=True,
        )
        return [
            texts[text] % (index, topic, topic_id, number, epoch, last) for index, number, text, epoch, last in columns
        ]

    def partitions(self) -> tuple[int, ...]:
        """Return the partition of each decision."""
        rows = len(self.numbers) // ROW_BYTES
        return struct.unpack_from(f"<{rows}i", self.numbers)
