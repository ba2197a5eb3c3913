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

import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import Protocol

from isrflow import column_blocks
from isrflow.contract import Decided
from isrflow.decision_columns import DecisionColumns

# Fewer decisions are rows of their own, which any SQLite shell shows.
BLOCK_DECISIONS_MIN = 64
# The most bytes of a block before compression.
CONTENT_BYTES_MAX = 4 * 1024 * 1024
# No JSON text begins with it.
_MARK = b"\1"
# The mark, the number of decisions, and the length of what is compressed.
_HEAD = struct.Struct(">cII")
# ``count_of`` needs this many bytes of a body.
HEAD_BYTES = _HEAD.size
# A higher level takes longer and saves little.
_LEVEL = 1


class Run(Protocol):
    """A decision as a text, or several on one event as columns, at consecutive indexes from ``idx`` on."""

    @property
    def seq(self) -> int: ...
    @property
    def idx(self) -> int: ...
    @property
    def decisions(self) -> int: ...
    @property
    def columns(self) -> DecisionColumns | None: ...
    def each(self) -> Iterator[bytes]:
        """Yield the text of each decision."""
        ...


def is_block(body: bytes) -> bool:
    """Return whether a row with this body is a block."""
    return body[:1] == _MARK


def count_of(head: bytes) -> int:
    """Return the number of decisions in a row whose body begins with ``head``; 1 for a block whose head is cut."""
    return int(_HEAD.unpack_from(head)[1]) if is_block(head) and len(head) >= HEAD_BYTES else 1


def last_of(row: Decided) -> tuple[int, int]:
    """Return the place of the last decision in a row."""
    return row.seq, row.idx + count_of(row.body) - 1


def rows_of(runs: Iterable[Run]) -> Iterator[Decided]:
    """Turn runs, in order, into rows. A run of many is a block."""
    for run in runs:
        is_many = run.columns is not None and run.decisions >= BLOCK_DECISIONS_MIN
        content = column_blocks.packed(run.columns) if run.columns is not None and is_many else b""
        if 0 < len(content) <= CONTENT_BYTES_MAX:
            head = _HEAD.pack(_MARK, run.decisions, len(content))
            yield Decided(run.seq, run.idx, head + zlib.compress(content, _LEVEL))
        else:
            yield from [Decided(run.seq, idx, body) for idx, body in enumerate(run.each(), run.idx)]


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
