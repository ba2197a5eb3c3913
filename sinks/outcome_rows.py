"""The shards' outcomes of a batch, in rows of bounded size, because Spark's JVM holds whole rows in little memory."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from sinks.row_bytes import body_of, row_of
from state.part import Part
from state.shard_outcome import ShardOutcome, decode_outcome, encode_outcome

ROW_BYTES_MAX = 4 * 1024 * 1024
# The overhead of a decision besides its text.
_PART_BYTES = 64
_T = TypeVar("_T")


def rows_of(outcome: ShardOutcome) -> Iterator[bytes]:
    """Write an outcome as one row, or as several if one would be too long.

    A row is longer than ``ROW_BYTES_MAX`` only if a single part or page is, and only before compression.
    """
    parts = list(_pieces(_sized(outcome.parts)))
    pages = list(_pieces((page, len(page[1])) for page in outcome.pages))
    if len(parts) <= 1 and len(pages) <= 1:
        yield row_of(encode_outcome(outcome))
        return
    for piece in parts:
        yield row_of(encode_outcome(ShardOutcome(outcome.shard, outcome.seq, piece, [], outcome.expires_ms)))
    for stored in pages:
        yield row_of(encode_outcome(ShardOutcome(outcome.shard, outcome.seq, [], stored, outcome.expires_ms)))


def outcomes_of(rows: Iterable[bytes]) -> list[ShardOutcome]:
    """Read the rows that ``rows_of`` wrote, in any order."""
    return [decode_outcome(body_of(row)) for row in rows]


def _sized(parts: Iterable[Part]) -> Iterator[tuple[Part, int]]:
    """Yield each part with its size."""
    for part in parts:
        size = len(part.body) + len(part.topic) + _PART_BYTES
        if part.columns:
            _, _, topics, names, _, numbers = part.columns
            size += len(numbers) + sum(map(len, (*part.columns.texts, *topics, *names)))
        yield part, size


def _pieces(sized: Iterable[tuple[_T, int]]) -> Iterator[list[_T]]:
    piece: list[_T] = []
    total = 0
    for one, size in sized:
        if piece and total + size > ROW_BYTES_MAX:
            yield piece
            piece, total = [], 0
        piece.append(one)
        total += size
    if piece:
        yield piece
