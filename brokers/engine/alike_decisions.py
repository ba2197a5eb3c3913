"""Decisions that were stored as columns: one object holds what one event decided about one topic's partitions.

A lost broker leads to hundreds of thousands of decisions that share some hundreds of texts (``isrflow/column_blocks``).
So each text is decoded once, and a decision stays a row of numbers.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from isrflow.column_blocks import ColumnRun, DecidedColumns
from isrflow.contract import Decided
from state.decisions import AnyDecision, HighWatermark, LeaderAndIsr, decode


class AlikeDecisions(NamedTuple):
    """Decisions of one kind on one event about partitions of one topic, in order."""

    kind: type[LeaderAndIsr] | type[HighWatermark]
    seq: int
    time_ms: int
    topic: str
    # Empty for high watermarks.
    topic_id: str
    # One decision for each text, by the text's place. Fields that are blank in the text hold placeholders.
    patterns: Mapping[int, AnyDecision]
    run: ColumnRun
    columns: DecidedColumns

    def one_by_one(self) -> list[AnyDecision]:
        """Return the decisions, each a copy of its pattern, because decoding its text would take five times as long."""
        run, patterns, topic, topic_id = self.run, self.patterns, self.topic, self.topic_id
        rows = zip(run.partitions, run.places, run.leader_epochs, run.last_values, strict=True)
        # Watermarks do not name the topic's id.
        named = {"topic": topic} if self.kind is HighWatermark else {"topic": topic, "topic_id": topic_id}
        last_field = "high_watermark" if self.kind is HighWatermark else "partition_epoch"
        return [
            replace(patterns[at], index=index, partition=number, leader_epoch=epoch, **named, **{last_field: last})
            for index, (number, at, epoch, last) in enumerate(rows, self.columns.idx + run.first)
        ]


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
    texts = columns.block.texts
    patterns: dict[int, AnyDecision] = {}
    for run in columns.runs:
        if run.topic:
            for place in set(run.places).difference(patterns):
                patterns[place] = decode(texts[place] % (0, run.topic, run.topic_id, 0, 0, 0))
            first = patterns[run.places[0]]
            if isinstance(first, LeaderAndIsr | HighWatermark):
                topic, topic_id = (msgspec.json.decode(name or b'""', type=str) for name in (run.topic, run.topic_id))
                yield AlikeDecisions(type(first), first.seq, first.time_ms, topic, topic_id, patterns, run, columns)
                continue
        yield from map(decode, columns.block.lines(columns.idx, run.first, run.first + len(run.partitions)))
