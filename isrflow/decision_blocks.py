"""Blocks: many decisions on one event in one row of the decision log. On Kafka a row is a record.

The problem: a lost broker leads to tens of thousands of decisions. A row for each costs as much as deciding it, and
their texts differ only in a few numbers.

The insight: such decisions are neighbours. They are on one event, and their indexes follow one another. So a row can
hold them together, under the place of the first one, in columns (``column_blocks``).

    seq  idx    body
    7    0      {"kind":"broker", …                          a row with one decision
    8    0      0x01, count, length, compressed columns      a block with the decisions 8,0 to 8,4095
    8    4096   0x01, count, length, compressed columns      the next ones

A block never reaches into another event. So everything that keeps or removes decisions by their event works on rows.
Readers get the texts as the rules would write them.
"""

import contextlib
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

from isrflow import column_blocks
from isrflow.column_blocks import Run
from isrflow.column_layout import ROWS_MAX
from isrflow.contract import Decided

# Fewer decisions are rows of their own, which any SQLite shell shows.
BLOCK_DECISIONS_MIN = 64
# The most bytes of the texts of several runs in a block.
TEXT_BYTES_MAX = 4 * 1024 * 1024
# No JSON text begins with it.
_MARK = b"\1"
# The mark, the number of decisions, and the length of what is compressed.
_HEAD = struct.Struct(">cII")
# ``count_of`` needs this many bytes of a body.
HEAD_BYTES = _HEAD.size
# A higher level takes longer and saves little.
_LEVEL = 1
# zlib lets other threads run.
THREADS_MAX = 2


def is_block(body: bytes) -> bool:
    """Return whether a row with this body is a block."""
    return body[:1] == _MARK


def count_of(head: bytes) -> int:
    """Return the number of decisions in a row whose body begins with ``head``; 1 for a block whose head is cut."""
    return int(_HEAD.unpack_from(head)[1]) if is_block(head) and len(head) >= HEAD_BYTES else 1


def last_of(row: Decided) -> tuple[int, int]:
    """Return the place of the last decision in a row."""
    return row.seq, row.idx + count_of(row.body) - 1


@contextlib.contextmanager
def rows_in_making(runs: Iterable[Run]) -> Iterator[Callable[[], list[Decided]]]:
    """Begin to turn runs into rows, in order, and yield a function that returns them: blocks where neighbours are many.

    Blocks are compressed on other threads, so the caller can do something else before it asks for the rows.
    """
    groups = list(_groups(runs))
    if sum(group.decisions >= BLOCK_DECISIONS_MIN for group in groups) < THREADS_MAX:
        yield lambda: [row for group in groups for row in _rows(group)]
        return
    with ThreadPoolExecutor(THREADS_MAX, "isrflow-blocks") as pool:
        making = pool.map(_rows, groups)
        yield lambda: [row for rows in making for row in rows]


class _Group:
    """Neighbours that one block may hold."""

    def __init__(self, first: Run) -> None:
        self.runs = [first]
        self.decisions = first.decisions
        self._bytes = first.text_bytes

    def takes(self, run: Run) -> bool:
        """Take the next run if the block may hold it too."""
        first, text_bytes = self.runs[0], run.text_bytes
        decisions = self.decisions + run.decisions
        if (
            run.seq != first.seq
            or run.idx != first.idx + self.decisions
            or decisions > ROWS_MAX
            or self._bytes + text_bytes > TEXT_BYTES_MAX
        ):
            return False
        self.runs.append(run)
        self.decisions = decisions
        self._bytes += text_bytes + 1
        return True


def _groups(runs: Iterable[Run]) -> Iterator[_Group]:
    """Cut runs where a block must end: before another event, at a gap, and where the block is full."""
    group: _Group | None = None
    for run in runs:
        if group is None or not group.takes(run):
            if group is not None:
                yield group
            group = _Group(run)
    if group is not None:
        yield group


def _rows(group: _Group) -> list[Decided]:
    runs, count = group.runs, group.decisions
    if count < BLOCK_DECISIONS_MIN or not all(map(_has_lines, runs)):
        return [Decided(run.seq, run.idx + nth, body) for run in runs for nth, body in enumerate(run.each())]
    first = runs[0]
    content = column_blocks.packed(runs)
    body = _HEAD.pack(_MARK, count, len(content)) + zlib.compress(content, _LEVEL)
    return [Decided(first.seq, first.idx, body)]


def _has_lines(run: Run) -> bool:
    """Return whether a run's texts are lines. A text of several lines cannot be in a block."""
    return run.columns is not None or b"\n" not in run.text


def content_of(row: Decided) -> tuple[bytes, int]:
    """Return what a block holds, unpacked, and the number of its decisions. Raises ``ValueError`` or ``zlib.error``."""
    if len(row.body) < HEAD_BYTES:
        raise ValueError(f"a head has {HEAD_BYTES} bytes, not {len(row.body)}")
    _, count, length = _HEAD.unpack_from(row.body)
    unpacking = zlib.decompressobj()
    # Room for one byte more lets zlib see the end of the block, and a damaged block cannot grow beyond that.
    content = unpacking.decompress(row.body[_HEAD.size :], length + 1)
    if not unpacking.eof or unpacking.unused_data or len(content) != length:
        raise ValueError(f"expected {count} decisions in {length} bytes")
    return content, int(count)
