"""Fan out: send each event to the shard of its topic, or once to all shards together. Pages go to their shards."""

from collections.abc import Iterator, Sequence

import msgspec
import pyarrow as pa

from bus.interface import Page
from controller_logic.replay import logged
from controller_logic.routing import route
from sinks.row_bytes import body_of, row_of
from streaming.keys import Keys
from streaming.sources.event_rows import entries_in, pages_in

# Checkpoints know the key by this name.
SCHEMA = "shard INT, events BINARY"
ARROW_SCHEMA = pa.schema([("shard", pa.int32()), ("events", pa.binary())])


class Routed(msgspec.Struct, frozen=True, array_like=True):
    """An event on its way to a shard. Without ``raw`` it only says how far the log has come."""

    seq: int
    clock_ms: int
    raw: bytes | None
    entered_ms: int | None = None
    is_claim: bool | None = None
    found_ms: int | None = None


class PackedRow(msgspec.Struct, frozen=True, array_like=True):
    """The content of one row: events, or else pages that replace those of the shard's state."""

    # How many events come in another row, which all shards share.
    shared_count: int
    routed: list[Routed]
    # Each with its number and body.
    pages: tuple[tuple[int, bytes], ...] = ()


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(PackedRow)


def decode_packed(body: bytes) -> PackedRow:
    """Read one row of ``fan_out``."""
    return _decoder.decode(body_of(body))


def fan_out(batches: Iterator[pa.RecordBatch], *, keys: Keys) -> Iterator[pa.RecordBatch]:
    """Turn each Arrow batch of events, in the order of seq, into packed rows, one per key.

    Every shard gets a row, so all of them know the same seq and clock after each batch. Events for all shards are not
    copied into the rows of shards: they are in rows of ``keys.shared``, which are left out if there is no such event.
    An Arrow batch of pages becomes a row for each shard that has one of them.
    """
    for batch in batches:
        if not batch.num_rows:
            continue
        if pages := pages_in(batch):
            yield _with_pages(pages, keys)
        else:
            yield from _fanned_out(batch, keys)


def _with_pages(pages: Sequence[Page], keys: Keys) -> pa.RecordBatch:
    of_shards: dict[int, list[tuple[int, bytes]]] = {}
    for page in pages:
        of_shards.setdefault(page.shard, []).append((page.page, page.body))
    bodies = [_row(PackedRow(0, [], tuple(some))) for some in of_shards.values()]
    return _rows([keys.shards[shard] for shard in of_shards], bodies)


def _fanned_out(batch: pa.RecordBatch, keys: Keys) -> Iterator[pa.RecordBatch]:
    packed: list[list[Routed]] = [[] for _ in keys.shards]
    shared: list[Routed] = []
    seq, clock_ms = 0, 0
    for entry in logged(entries_in(batch)):
        seq, clock_ms = entry.seq, entry.clock_ms
        shard = route(entry.event, len(packed))
        (shared if shard is None else packed[shard]).append(
            Routed(seq, clock_ms, entry.raw, entry.entered_ms, entry.is_claim, entry.found_ms)
        )
    if shared:
        yield _rows(keys.shared, [_row(PackedRow(0, shared))] * len(keys.shared))
    for target in packed:
        if not any(events and events[-1].seq == seq for events in (target, shared)):
            target.append(Routed(seq, clock_ms, None))
    yield _rows(keys.shards, [_row(PackedRow(len(shared), target)) for target in packed])


def _row(packed: PackedRow) -> bytes:
    return row_of(_encoder.encode(packed))


def _rows(keys: Sequence[int], bodies: Sequence[bytes]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(keys, pa.int32()), pa.array(bodies, pa.binary())], schema=ARROW_SCHEMA)
