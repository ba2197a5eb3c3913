"""The outcome of one batch in one shard, on its way from the operator to the sink."""

import msgspec

from state.part import Part

CLUSTER_PAGE = -1


class ShardOutcome(msgspec.Struct, frozen=True, array_like=True):
    """A shard's decisions of a batch, and the pages of its state that changed."""

    shard: int
    # The last event of the batch, the same in every shard.
    seq: int
    # The decisions, to be numbered.
    parts: list[Part]
    # Each changed page as it now is. CLUSTER_PAGE is the shard's cluster part.
    pages: list[tuple[int, bytes]]
    # The time on the bus's clock until which the batch's admin requests may be decided; None if none has a deadline.
    expires_ms: int | None = None


# For an outcome's way through Spark.
encode_outcome = msgspec.msgpack.Encoder().encode
decode_outcome = msgspec.msgpack.Decoder(ShardOutcome).decode
