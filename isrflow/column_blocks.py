"""The content of a block: columns of decisions (``decision_columns``) as bytes.

    how many texts, how many runs, bytes of the section that follows              3 numbers of 32 bits
    the texts; for each run, the topic and its id as they are in a text           in lines
    decisions of each run                                                         32 bits each
    the rows                                                                      columns

Numbers are little-endian. A block may have columns of replicas from level 2 on.
"""

import struct
from itertools import repeat
from typing import NamedTuple

from isrflow.decision_columns import REPLICA_BYTES, ROW_BYTES, DecisionColumns

_HEAD = struct.Struct("<III")


def packed(columns: DecisionColumns) -> bytes:
    """Return the content of a block. No text may have several lines."""
    section = b"\n".join([*columns.texts, *columns.names])
    head = _HEAD.pack(len(columns.texts), len(columns.counts), len(section))
    return b"".join((head, section, struct.pack(f"<{len(columns.counts)}I", *columns.counts), columns.numbers))


def opened(content: bytes, count: int) -> DecisionColumns:
    """Read what ``packed`` made of ``count`` decisions. Raises ``ValueError`` if it is damaged."""
    try:
        texts, runs, section = _HEAD.unpack_from(content)
        end = _HEAD.size + section
        lines = content[_HEAD.size : end].split(b"\n")
        counts = struct.unpack_from(f"<{runs}I", content, end)
    except struct.error as error:
        raise ValueError(f"a column is damaged: {error}") from error
    numbers = content[end + 4 * runs :]
    replicas, left_over = divmod(len(numbers) - ROW_BYTES * count, REPLICA_BYTES * count) if count else (0, 1)
    if (len(lines), sum(counts)) != (texts + 2 * runs, count) or 0 in counts or replicas < 0 or left_over:
        raise ValueError(f"expected {count} decisions in {len(content)} bytes")
    return DecisionColumns(lines[:texts], lines[texts:], counts, numbers, replicas)


# Of a decision: its partition, the place of its text in the block, its leader epoch, its last value, and what fills the
# text's blanks for replicas.
Row = tuple[int, int, int, int, tuple[int, ...]]


class DecidedColumns(NamedTuple):
    """Decisions on one event at consecutive indexes, the first of which is ``idx``, as a block of columns."""

    seq: int
    idx: int
    block: DecisionColumns
    rows: list[Row]


def rows_in(block: DecisionColumns) -> list[Row]:
    """Return the decisions of a block as rows, in order. Raises ``ValueError`` if they cannot be read."""
    columns = block.columns()
    if max(columns[1]) >= len(block.texts):
        raise ValueError(f"a decision has text {max(columns[1])} of {len(block.texts)}")
    replicas = zip(*block.replica_columns(), strict=True) if block.replicas else repeat(())
    return list(zip(*columns, replicas, strict=False))
