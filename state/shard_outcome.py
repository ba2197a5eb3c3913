"""What one shard made of one batch, on its way from the operator to the sink."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from state.canonical import Part
from state.decision_columns import Columns

CLUSTER_PAGE = -1


class ShardOutcome(msgspec.Struct, frozen=True):
    """A shard's decisions of a batch, and the pages of its state that changed."""

    shard: int
    # The last event of the batch, the same in every shard.
    seq: int
    # The decisions, to be numbered.
    parts: list[Part]
    # Each changed page as it now is. CLUSTER_PAGE is the shard's cluster part.
    pages: list[tuple[int, bytes]]
    # Until then, by the bus's clock, no admin's request in the batch is too late; None if it has no such request.
    expires_ms: int | None = None


class _Sent(NamedTuple):
    """A part as it travels. Columns travel as the part's body and the number of their table, which travels once."""

    part: Part
    table: int | None = None
    # Of columns, as in a decision's text.
    topic: bytes = b""
    topic_id: bytes = b""


class _Packed(msgspec.Struct, frozen=True, array_like=True):
    shard: int
    seq: int
    parts: list[_Sent]
    pages: list[tuple[int, bytes]]
    expires_ms: int | None
    tables: list[list[bytes]]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Packed)


def encode_outcome(outcome: ShardOutcome) -> bytes:
    """Pack an outcome for its way through Spark."""
    tables = {id(part.columns.texts): part.columns.texts for part in outcome.parts if part.columns}
    places = {table: place for place, table in enumerate(tables)}
    sent = [_sent(part, places) for part in outcome.parts]
    packed = _Packed(outcome.shard, outcome.seq, sent, outcome.pages, outcome.expires_ms, list(tables.values()))
    return _encoder.encode(packed)


def _sent(part: Part, places: Mapping[int, int]) -> _Sent:
    columns = part.columns
    if columns is None:
        return _Sent(part)
    return _Sent(_with(part, columns.numbers, None), places[id(columns.texts)], columns.topic, columns.topic_id)


def _with(part: Part, body: bytes, columns: Columns | None) -> Part:
    """Return a part with another body and columns. A batch has tens of thousands, and ``_replace`` takes three times as
    long.
    """
    return Part(
        part.seq, part.rank, part.topic, part.partition, part.broker, body, part.decisions, part.reasons, columns
    )


def decode_outcome(body: bytes) -> ShardOutcome:
    """Unpack what ``encode_outcome`` packed."""
    packed = _decoder.decode(body)
    parts = [_received(sent, packed.tables) for sent in packed.parts]
    return ShardOutcome(packed.shard, packed.seq, parts, packed.pages, packed.expires_ms)


def _received(sent: _Sent, tables: Sequence[list[bytes]]) -> Part:
    part, table, topic, topic_id = sent
    if table is None:
        return part
    return _with(part, b"", Columns(tables[table], topic, topic_id, part.body))
