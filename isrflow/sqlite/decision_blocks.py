"""Blocks: many decisions on one event in one row of the decision log.

The problem: a lost broker leads to tens of thousands of decisions. A row for each costs as much as deciding it, and
their texts differ only in a few numbers.

The insight: such decisions are neighbours. They are on one event, and their indexes follow one another. So a row can
hold their texts together, compressed to a twentieth, under the place of the first one:

    seq  idx    body
    7    0      {"kind":"broker", …                          a row with one decision
    8    0      0x00, count, length, compressed lines        a block with the decisions 8,0 to 8,1023
    8    1024   0x00, count, length, compressed lines        the next ones

A block never reaches into another event. So everything that keeps or removes decisions by their event works on rows.
Readers get the texts as they were written.
"""

import contextlib
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from typing import NamedTuple, Protocol

from isrflow.contract import Decided

BLOCK_DECISIONS_MAX = 1_024
# Fewer decisions are rows of their own, so a small cluster's file stays readable for older versions.
BLOCK_DECISIONS_MIN = 64
# A reader that asks for one decision unpacks a whole block.
BLOCK_BYTES_MAX = 1024 * 1024
# No JSON text begins with it.
_MARK = b"\0"
# The mark, the number of decisions, and the length of their texts.
_HEAD = struct.Struct(">cII")
# In SQL: what ``count_of`` needs of a body.
HEAD = f"substr(body, 1, {_HEAD.size})"
# A higher level takes longer and saves little.
_LEVEL = 1
# zlib lets other threads run.
THREADS_MAX = 2


class Run(Protocol):
    """Decisions on one event at consecutive indexes, the first of which is ``idx``, in lines of text."""

    @property
    def seq(self) -> int: ...
    @property
    def idx(self) -> int: ...
    @property
    def decisions(self) -> int: ...
    @property
    def text(self) -> bytes: ...
    def bodies(self) -> list[bytes]:
        """Return the text of each decision."""
        ...


class _Lines(NamedTuple):
    """A part of a run."""

    seq: int
    idx: int
    decisions: int
    text: bytes

    def bodies(self) -> list[bytes]:
        return self.text.split(b"\n")


def is_block(body: bytes) -> bool:
    """Say whether a row with this body is a block."""
    return body[:1] == _MARK


def count_of(head: bytes) -> int:
    """Return the number of decisions in a row whose body begins with ``head``."""
    return int(_HEAD.unpack_from(head)[1]) if is_block(head) else 1


@contextlib.contextmanager
def rows_in_making(runs: Iterable[Run]) -> Iterator[Callable[[], list[Decided]]]:
    """Begin to turn runs in order into rows: blocks where there are many neighbours. Call the result for the rows.

    Blocks are compressed on other threads, so until then the caller can do something else.
    """
    groups = list(_groups(runs))
    if sum(_count(group) >= BLOCK_DECISIONS_MIN for group in groups) < THREADS_MAX:
        yield lambda: [row for group in groups for row in _rows(group)]
        return
    with ThreadPoolExecutor(THREADS_MAX, "isrflow-blocks") as pool:
        making = pool.map(_rows, groups)
        yield lambda: [row for rows in making for row in rows]


def _groups(runs: Iterable[Run]) -> Iterator[list[Run]]:
    """Cut runs where neither a block may go on: another event, a gap, or more than a block may hold."""
    group: list[Run] = []
    count = size = 0
    for run in runs:
        if group and (
            run.seq != group[0].seq
            or run.idx != group[0].idx + count
            or count + run.decisions > BLOCK_DECISIONS_MAX
            or size + len(run.text) > BLOCK_BYTES_MAX
        ):
            yield group
            group, count, size = [], 0, 0
        group.append(run)
        count += run.decisions
        size += len(run.text) + 1
    if group:
        yield group


def _count(group: list[Run]) -> int:
    return sum([run.decisions for run in group])


def _rows(group: list[Run]) -> list[Decided]:
    seq, idx, count = group[0].seq, group[0].idx, _count(group)
    lines = b"\n".join([run.text for run in group])
    # A text of several lines cannot be in a block.
    if count < BLOCK_DECISIONS_MIN or lines.count(b"\n") != count - 1:
        return [Decided(run.seq, run.idx + nth, body) for run in group for nth, body in enumerate(run.bodies())]
    if len(lines) <= BLOCK_BYTES_MAX and count <= BLOCK_DECISIONS_MAX:
        return [_block(seq, idx, count, lines)]
    # One run that is too large for a block.
    bodies, half = lines.split(b"\n"), count // 2
    return [
        row
        for start, some in ((0, bodies[:half]), (half, bodies[half:]))
        for row in _rows([_Lines(seq, idx + start, len(some), b"\n".join(some))])
    ]


def _block(seq: int, idx: int, count: int, lines: bytes) -> Decided:
    return Decided(seq, idx, _HEAD.pack(_MARK, count, len(lines)) + zlib.compress(lines, _LEVEL))


def decisions_in(row: Decided, first_idx: int = 0, limit: int | None = None) -> list[Decided]:
    """Return the decisions in a row, from an index on, and up to ``limit`` of them."""
    if not is_block(row.body):
        return [row] if row.idx >= first_idx else []
    _, count, length = _HEAD.unpack_from(row.body)
    unpacking = zlib.decompressobj()
    # With room for one byte more it reads to the end, and a damaged block cannot grow without a bound.
    text = unpacking.decompress(row.body[_HEAD.size :], length + 1)
    lines = text.split(b"\n")
    if not unpacking.eof or unpacking.unused_data or (len(text), len(lines)) != (length, count):
        raise ValueError(f"expected {count} decisions in {length} bytes")
    start = max(0, first_idx - row.idx)
    wanted = lines[start:] if limit is None else lines[start : start + limit]
    first = row.idx + start
    return list(map(Decided._make, zip(repeat(row.seq), range(first, first + len(wanted)), wanted, strict=False)))
