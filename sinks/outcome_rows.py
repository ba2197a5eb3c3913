"""The shards' outcomes of a batch, in rows of bounded size, because Spark's JVM holds whole rows in little memory."""

from collections.abc import Iterable, Iterator

from sinks.row_bytes import COMPRESSED_BYTES_MIN, body_of, row_of
from state.chunks import chunks
from state.part import Part
from state.shard_outcome import ShardOutcome, decode_outcome, encode_outcome

ROW_BYTES_MAX = 4 * 1024 * 1024
# The overhead of a decision besides its text.
_PART_BYTES = 64


def rows_of(outcome: ShardOutcome) -> Iterator[bytes]:
    """Write an outcome as one row, or a long one as several. Rows of pages are not compressed, because pages are.

    Before compression a row is longer than ``ROW_BYTES_MAX`` only if a single part or page is.
    """
    whole = encode_outcome(outcome)
    if len(whole) < COMPRESSED_BYTES_MIN:
        yield row_of(whole)
        return
    for piece in chunks(_sized(outcome.parts), ROW_BYTES_MAX):
        yield row_of(encode_outcome(ShardOutcome(outcome.shard, outcome.seq, piece, [], outcome.expires_ms)))
    for stored in chunks(((page, len(page[1])) for page in outcome.pages), ROW_BYTES_MAX):
        body = encode_outcome(ShardOutcome(outcome.shard, outcome.seq, [], stored, outcome.expires_ms))
        yield row_of(body, compressed=False)


def outcomes_of(rows: Iterable[bytes]) -> list[ShardOutcome]:
    """Read the rows that ``rows_of`` wrote, in any order."""
    return [decode_outcome(body_of(row)) for row in rows]


def _sized(parts: Iterable[Part]) -> Iterator[tuple[Part, int]]:
    """Yield each part with its size."""
    for part in parts:
        size = len(part.body) + len(part.topic) + _PART_BYTES
        columns = part.columns
        if columns:
            size += columns.byte_count
        yield part, size
