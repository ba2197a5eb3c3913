"""Fan out: send each event to the shard that holds its topic, or to every shard."""

from collections.abc import Callable, Iterator

import msgspec
import pyarrow as pa

from isrflow.controller_logic.log import logged
from isrflow.controller_logic.routing import route

SCHEMA = "shard INT, events BINARY"
ARROW_SCHEMA = pa.schema([("shard", pa.int32()), ("events", pa.binary())])


class Routed(msgspec.Struct, frozen=True, array_like=True):
    """Hold an event on its way to a shard; without ``raw`` it only says how far the log has come."""

    seq: int
    clock_ms: int
    raw: bytes | None
    entered_ms: int | None = None
    is_claim: bool | None = None


Ordered = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Routed])


def decode_routed(body: bytes) -> list[Routed]:
    """Read what ``fan_out`` packed for one shard."""
    return _decoder.decode(body)


def fan_out(
    batches: Iterator[pa.RecordBatch], *, shards: int, in_order: Ordered | None = None
) -> Iterator[pa.RecordBatch]:
    """Turn rows of events, in the order of seq, into one packed row a shard.

    ``in_order`` makes such rows of what the source gives, where that has another order. Every shard
    gets a row, so that all of them know the same seq and clock after each batch.
    """
    for batch in in_order(batches) if in_order else batches:
        if batch.num_rows == 0:
            continue
        packed: list[list[Routed]] = [[] for _ in range(shards)]
        seq, clock_ms = 0, 0
        for entry in logged(zip(*(column.to_pylist() for column in batch.columns), strict=True)):
            seq, clock_ms = entry.seq, entry.clock_ms
            shard = route(entry.event, shards)
            for target in packed if shard is None else (packed[shard],):
                target.append(Routed(seq, clock_ms, entry.raw, entry.entered_ms, entry.is_claim))
        for target in packed:
            if not target or target[-1].seq < seq:
                target.append(Routed(seq, clock_ms, None))
        bodies = [_encoder.encode(target) for target in packed]
        yield pa.RecordBatch.from_arrays(
            [pa.array(range(shards), pa.int32()), pa.array(bodies, pa.binary())], schema=ARROW_SCHEMA
        )
