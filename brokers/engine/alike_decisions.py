"""Decisions that were stored as columns: one object holds what one event decided about many partitions.

A lost broker leads to hundreds of thousands of decisions that share a few texts (``isrflow/decision_columns``). So each
text is decoded once, and a decision stays a row of numbers.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from isrflow.column_blocks import DecidedColumns, Row
from isrflow.contract import Decided
from isrflow.decision_columns import DecisionColumns, has_replica_blanks, line
from state.decisions import AnyDecision, HighWatermark, LeaderAndIsr, decode


class Pattern(NamedTuple):
    """What a text says. Fields that are blank in it hold placeholders."""

    decision: AnyDecision
    # Whether its brokers are places of the assignment.
    of_places: bool


class OfTopic(NamedTuple):
    """Decisions about one topic, from place ``first`` in the block to the one before ``end``."""

    topic: str
    # Empty for high watermarks.
    topic_id: str
    first: int
    end: int


class AlikeDecisions(NamedTuple):
    """Decisions of one kind on one event about partitions, in order."""

    kind: type[LeaderAndIsr] | type[HighWatermark]
    seq: int
    time_ms: int
    # By the place of the text.
    patterns: Mapping[int, Pattern]
    topics: Sequence[OfTopic]
    columns: DecidedColumns

    @property
    def rows(self) -> list[Row]:
        """The rows of all these decisions."""
        return self.columns.rows[self.topics[0].first : self.topics[-1].end]

    def one_by_one(self) -> Iterator[AnyDecision]:
        """Yield the decisions, each a copy of another one, because decoding its text would take five times as long."""
        decided: dict[tuple[int, tuple[int, ...]], AnyDecision] = {}
        last_field = "high_watermark" if self.kind is HighWatermark else "partition_epoch"
        for topic, topic_id, first, end in self.topics:
            # Watermarks do not name the topic's id.
            named = {"topic": topic} if self.kind is HighWatermark else {"topic": topic, "topic_id": topic_id}
            for index, row in enumerate(self.columns.rows[first:end], self.columns.idx + first):
                partition, place, leader_epoch, last, replicas = row
                like = decided.get((place, replicas))
                if like is None:
                    like = decided[place, replicas] = self._decision(place, replicas)
                numbers = {"index": index, "partition": partition, "leader_epoch": leader_epoch, last_field: last}
                yield replace(like, **named, **numbers)

    def _decision(self, place: int, replicas: tuple[int, ...]) -> AnyDecision:
        """Return what a text says about some replicas."""
        pattern = self.patterns[place]
        return _decoded_text(self.columns.block.texts[place], replicas) if pattern.of_places else pattern.decision


# What a broker of any kind reads: a decision, or many.
GivenDecision = AnyDecision | AlikeDecisions


def one_by_one(given: Iterable[GivenDecision]) -> Iterator[AnyDecision]:
    """Yield the decisions one at a time."""
    for one in given:
        if isinstance(one, AlikeDecisions):
            yield from one.one_by_one()
        else:
            yield one


def decoded(row: Decided | DecidedColumns) -> Iterable[GivenDecision]:
    """Decode a row of the decision log. Only decisions about partitions are given together.

    Raises ``msgspec.ValidationError`` for a kind of decision that only later versions know.
    """
    return [decode(row.body)] if isinstance(row, Decided) else _decoded_columns(row)


def _decoded_columns(columns: DecidedColumns) -> Iterator[GivenDecision]:
    block, rows = columns.block, columns.rows
    patterns = {place: _pattern(block.texts[place], len(rows[0][-1])) for place in {row[1] for row in rows}}

    def kind_of(topic: OfTopic) -> type[LeaderAndIsr] | type[HighWatermark] | None:
        kind = type(patterns[rows[topic.first][1]].decision)
        return kind if topic.topic and kind in (LeaderAndIsr, HighWatermark) else None

    for kind, some in groupby(_topics(block), key=kind_of):
        topics = list(some)
        first = topics[0].first
        if kind is None:
            yield from map(decode, block.lines(columns.idx, first, topics[-1].end))
        else:
            like = patterns[rows[first][1]].decision
            yield AlikeDecisions(kind, like.seq, like.time_ms, patterns, topics, columns)


def _pattern(text: bytes, replicas: int) -> Pattern:
    return Pattern(_decoded_text(text, range(replicas)), has_replica_blanks(text))


def _topics(block: DecisionColumns) -> Iterator[OfTopic]:
    # The texts of a run without names are whole.
    names = [_name(name or _NO_NAME) for name in block.names]
    for topic, topic_id, (first, end) in zip(names[::2], names[1::2], pairwise(block.starts), strict=True):
        yield OfTopic(topic, topic_id, first, end)


def _decoded_text(text: bytes, replicas: Sequence[int]) -> AnyDecision:
    decision: AnyDecision = decode(line(text, (0, _NO_NAME, _NO_NAME, 0, 0, 0, *replicas)))
    return decision


_NO_NAME = b'""'
_name = msgspec.json.Decoder(str).decode
