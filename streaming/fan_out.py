"""Fan out: send each event to the shard of its topic, or once to all shards together. Pages go to their shards."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import msgspec
import pyarrow as pa

from bus.interface import Entry, Page
from controller_logic.replay import logged
from controller_logic.routing import route
from sinks.row_bytes import body_of, row_of
from streaming.keys import Keys

# Checkpoints know the key by this name.
SCHEMA = "shard INT, events BINARY"
ARROW_SCHEMA = pa.schema([("shard", pa.int32()), ("events", pa.binary())])
# Of events or pages. Limits, because Spark holds several copies of a whole Arrow batch. A single event may be longer.
BYTES_PER_ARROW_BATCH = 4 * 1024 * 1024
ROWS_PER_ARROW_BATCH = 20_000
_T = TypeVar("_T")


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
    """Read the content of one row."""
    return _decoder.decode(body_of(body))


def rows_of_events(entries: Iterable[Entry], keys: Keys) -> Iterator[pa.RecordBatch]:
    """Turn events, in the order of seq, into packed rows: one per key for each slice of bounded count and bytes.

    Every shard gets a row, so all of them know the same seq and clock after each batch. Events for all shards are not
    copied into the rows of shards: they are in rows of ``keys.shared``, which are left out if there is no such event.
    """
    for some in _cut(entries, lambda entry: len(entry.raw)):
        yield from _fanned_out(some, keys)


def rows_of_pages(pages: Iterable[Page], keys: Keys) -> Iterator[pa.RecordBatch]:
    """Turn pages of a state into a row for each shard that has one of them, in slices with the same bounds."""
    for some in _cut(pages, lambda page: len(page.body)):
        of_shards: dict[int, list[tuple[int, bytes]]] = {}
        for page in some:
            of_shards.setdefault(page.shard, []).append((page.page, page.body))
        bodies = [_row(PackedRow(0, [], tuple(held))) for held in of_shards.values()]
        yield _rows([keys.shards[shard] for shard in of_shards], bodies)


def _cut(items: Iterable[_T], size_of: Callable[[_T], int]) -> Iterator[list[_T]]:
    some: list[_T] = []
    total = 0
    for item in items:
        size = size_of(item)
        if some and (total + size > BYTES_PER_ARROW_BATCH or len(some) == ROWS_PER_ARROW_BATCH):
            yield some
            some, total = [], 0
        total += size
        some.append(item)
    if some:
        yield some


def _fanned_out(entries: Sequence[Entry], keys: Keys) -> Iterator[pa.RecordBatch]:
    packed: list[list[Routed]] = [[] for _ in keys.shards]
    shared: list[Routed] = []
    seq, clock_ms = 0, 0
    for entry in logged(entries):
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
