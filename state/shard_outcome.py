"""What one shard made of one micro-batch, on its way from the operator to the sink."""

import msgspec

from state.canonical import Part

CLUSTER_PAGE = -1


class ShardOutcome(msgspec.Struct, frozen=True, array_like=True):
    """Hold the decisions to be numbered, and the pages that changed as they now stand.

    ``seq`` is the last event of the batch, the same in every shard. Page ``CLUSTER_PAGE`` is the
    shard's cluster part. ``expires_ms`` is up to when, by the bus's clock, all that admins asked is decided in time.
    """

    shard: int
    seq: int
    parts: list[Part]
    pages: list[tuple[int, bytes]]
    expires_ms: int | None = None


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(ShardOutcome)


def encode_outcome(outcome: ShardOutcome) -> bytes:
    """Pack an outcome for the way through Spark."""
    return _encoder.encode(outcome)


def decode_outcome(body: bytes) -> ShardOutcome:
    """Unpack what ``encode_outcome`` packed."""
    return _decoder.decode(body)
