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

import struct
import zlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import repeat
from operator import itemgetter

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
_seq = itemgetter(0)
_idx = itemgetter(1)
_body = itemgetter(2)


def is_block(body: bytes) -> bool:
    """Say whether a row with this body is a block."""
    return body[:1] == _MARK


def count_of(head: bytes) -> int:
    """Return the number of decisions in a row whose body begins with ``head``."""
    return int(_HEAD.unpack_from(head)[1]) if is_block(head) else 1


def rows_of(decisions: Sequence[Decided]) -> Iterator[Decided]:
    """Turn decisions in order into rows: blocks where there are many neighbours."""
    start = 0
    while start < len(decisions):
        end = _end_of_neighbours(decisions, start)
        some = decisions[start:end]
        lines = b"\n".join(map(_body, some)) if len(some) >= BLOCK_DECISIONS_MIN else b""
        if not lines or lines.count(b"\n") != len(some) - 1:
            yield from some
        elif len(lines) > BLOCK_BYTES_MAX:
            # Half as many of these fit, or are too few for a block.
            end = start + len(some) // 2
            yield from rows_of(some[: len(some) // 2])
        else:
            head = _HEAD.pack(_MARK, len(some), len(lines))
            yield Decided(some[0].seq, some[0].idx, head + zlib.compress(lines, _LEVEL))
        start = end


def _end_of_neighbours(decisions: Sequence[Decided], start: int) -> int:
    """Return the end of the decisions from ``start`` on that can be one block; the next place if there are none."""
    seq, idx, body = decisions[start]
    few = start + BLOCK_DECISIONS_MIN - 1
    if few >= len(decisions) or decisions[few][:2] != (seq, idx + few - start):
        return start + 1
    # As many as fit if all are as long as the first one.
    many = min(BLOCK_DECISIONS_MAX, BLOCK_BYTES_MAX // (len(body) + 1))
    end = bisect_right(decisions, seq, start, min(start + many, len(decisions)), key=_seq)
    are_neighbours = list(map(_idx, decisions[start:end])) == list(range(idx, idx + end - start))
    return end if are_neighbours else start + 1


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
