"""Decisions that were stored as columns: one object holds what one event decided about one topic's partitions.

A lost broker leads to hundreds of thousands of decisions that share a few texts (``isrflow/decision_columns``). So each
text is decoded once, and a decision stays a row of numbers.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from isrflow.column_blocks import ColumnRun, DecidedColumns
from isrflow.contract import Decided
from isrflow.decision_columns import has_replica_blanks, line
from state.decisions import AnyDecision, HighWatermark, LeaderAndIsr, decode


class Pattern(NamedTuple):
    """What a text says. Fields that are blank in it hold placeholders."""

    decision: AnyDecision
    # Whether its brokers are places of the assignment.
    of_places: bool


class AlikeDecisions(NamedTuple):
    """Decisions of one kind on one event about partitions of one topic, in order."""

    kind: type[LeaderAndIsr] | type[HighWatermark]
    seq: int
    time_ms: int
    topic: str
    # Empty for high watermarks.
    topic_id: str
    patterns: Mapping[int, Pattern]
    run: ColumnRun
    columns: DecidedColumns

    def one_by_one(self) -> list[AnyDecision]:
        """Return the decisions, each a copy of another one, because decoding its text would take five times as long."""
        run, topic, topic_id = self.run, self.topic, self.topic_id
        keys = list(zip(run.places, run.replicas, strict=True))
        decided = {key: self._decision(*key) for key in set(keys)}
        rows = zip(run.partitions, keys, run.leader_epochs, run.last_values, strict=True)
        # Watermarks do not name the topic's id.
        named = {"topic": topic} if self.kind is HighWatermark else {"topic": topic, "topic_id": topic_id}
        last_field = "high_watermark" if self.kind is HighWatermark else "partition_epoch"
        return [
            replace(decided[key], index=index, partition=number, leader_epoch=epoch, **named, **{last_field: last})
            for index, (number, key, epoch, last) in enumerate(rows, self.columns.idx + run.first)
        ]

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
    texts = columns.block.texts
    patterns: dict[int, Pattern] = {}
    for run in columns.runs:
        if run.topic:
            for place in set(run.places).difference(patterns):
                text = texts[place]
                patterns[place] = Pattern(_decoded_text(text, range(len(run.replicas[0]))), has_replica_blanks(text))
            first = patterns[run.places[0]].decision
            if isinstance(first, LeaderAndIsr | HighWatermark):
                topic, topic_id = (msgspec.json.decode(name or b'""', type=str) for name in (run.topic, run.topic_id))
                yield AlikeDecisions(type(first), first.seq, first.time_ms, topic, topic_id, patterns, run, columns)
                continue
        yield from map(decode, columns.block.lines(columns.idx, run.first, run.first + len(run.partitions)))


def _decoded_text(text: bytes, replicas: Sequence[int]) -> AnyDecision:
    decision: AnyDecision = decode(line(text, (0, _NO_NAME, _NO_NAME, 0, 0, 0, *replicas)))
    return decision


_NO_NAME = b'""'
