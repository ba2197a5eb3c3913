"""What one shard made of one batch, on its way from the operator to the sink."""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from state.canonical import Part
from state.decision_columns import Columns
from state.numbered_run import ReasonCount

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
    """A part as it travels. Columns name their table of texts, which travels once."""

    seq: int
    rank: int
    topic: str
    partition: int
    broker: int
    # The text, or the numbers of columns.
    body: bytes
    decisions: int = 1
    reasons: tuple[ReasonCount, ...] = ()
    table: int | None = None
    # Of columns, as in a decision's text.
    written_topic: bytes = b""
    written_topic_id: bytes = b""


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
    tables = tables_of(outcome.parts)
    places = {id(texts): place for place, texts in enumerate(tables)}
    sent = [
        _Sent(*part[:8])
        if (columns := part.columns) is None
        else _Sent(
            *part[:5],
            columns.numbers,
            part.decisions,
            part.reasons,
            places[id(columns.texts)],
            columns.topic,
            columns.topic_id,
        )
        for part in outcome.parts
    ]
    return _encoder.encode(_Packed(outcome.shard, outcome.seq, sent, outcome.pages, outcome.expires_ms, tables))


def tables_of(parts: Iterable[Part]) -> list[list[bytes]]:
    """Return the tables of texts that the columns of some parts share, each once."""
    return list({id(part.columns.texts): part.columns.texts for part in parts if part.columns}.values())


def decode_outcome(body: bytes) -> ShardOutcome:
    """Unpack what ``encode_outcome`` packed."""
    packed = _decoder.decode(body)
    tables = packed.tables
    parts = [
        Part(*sent[:8])
        if sent.table is None
        else Part(
            *sent[:5],
            b"",
            sent.decisions,
            sent.reasons,
            Columns(tables[sent.table], sent.written_topic, sent.written_topic_id, sent.body),
        )
        for sent in packed.parts
    ]
    return ShardOutcome(packed.shard, packed.seq, parts, packed.pages, packed.expires_ms)
