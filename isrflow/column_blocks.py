"""The content of a block: columns of decisions (``decision_columns``) as bytes.

    how many texts, how many runs, bytes of the section that follows              3 numbers of 32 bits
    the texts; for each run, the topic and its id as they are in a text           in lines
    decisions of each run                                                         32 bits each
    the rows                                                                      columns

Numbers are little-endian. A block may have columns of replicas from level 2 on.
"""

import struct
from itertools import pairwise
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


class ColumnRun(NamedTuple):
    """The decisions of one kind on one event about one topic, or decisions that are whole texts."""

    # The place in the block of the first one.
    first: int
    # As they are in a text. Empty if the texts are whole.
    topic: bytes
    topic_id: bytes
    partitions: tuple[int, ...]
    # The place of each decision's text in the block.
    places: tuple[int, ...]
    leader_epochs: tuple[int, ...]
    last_values: tuple[int, ...]
    # What fills the blanks of each decision's text for replicas.
    replicas: list[tuple[int, ...]]


class DecidedColumns(NamedTuple):
    """Decisions on one event at consecutive indexes, the first of which is ``idx``, as a block of columns."""

    seq: int
    idx: int
    block: DecisionColumns
    runs: list[ColumnRun]


def runs_in(block: DecisionColumns) -> list[ColumnRun]:
    """Return the runs of a block, in order. Raises ``ValueError`` if they cannot be read."""
    columns = block.columns()
    if max(columns[1]) >= len(block.texts):
        raise ValueError(f"a decision has text {max(columns[1])} of {len(block.texts)}")
    of_replicas = block.replica_columns()
    replicas: list[tuple[int, ...]] = list(zip(*of_replicas, strict=True)) or [()] * block.decision_count
    runs = []
    for nth, (first, end) in enumerate(pairwise(block.starts)):
        partitions, places, leader_epochs, last_values = [column[first:end] for column in columns]
        names = block.names[2 * nth], block.names[2 * nth + 1]
        runs.append(ColumnRun(first, *names, partitions, places, leader_epochs, last_values, replicas[first:end]))
    return runs
