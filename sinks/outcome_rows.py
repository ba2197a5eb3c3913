"""The shards' outcomes of a batch, in rows of bounded size, because Spark's JVM holds whole rows in little memory."""

from collections.abc import Iterable, Iterator

from sinks.row_bytes import body_of, row_of
from state.chunks import chunks
from state.part import Part
from state.shard_outcome import ShardOutcome, decode_outcome, encode_outcome

ROW_BYTES_MAX = 4 * 1024 * 1024
# The overhead of a decision besides its text.
_PART_BYTES = 64


def rows_of(outcome: ShardOutcome) -> Iterator[bytes]:
    """Write an outcome as one row, or as several if one would be too long.

    Before compression a row is longer than ``ROW_BYTES_MAX`` only if a single part or page is.
    """
    parts = list(chunks(_sized(outcome.parts), ROW_BYTES_MAX))
    pages = list(chunks(((page, len(page[1])) for page in outcome.pages), ROW_BYTES_MAX))
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
        columns = part.columns
        if columns:
            size += len(columns.numbers) + sum(map(len, (*columns.texts, *columns.topics, *columns.names)))
        yield part, size
