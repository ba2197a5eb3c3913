"""Parts: the encoded decisions of a shard, each with its place in the canonical order (``state.canonical``)."""

from typing import NamedTuple

from msgspec import UNSET, UnsetType

from isrflow.decision_columns import DecisionColumns
from state.decisions import (
    Answer,
    AnyDecision,
    ConfigDecision,
    Divergence,
    EntityDecision,
    HighWatermark,
    LeaderAndIsr,
    StopReplica,
    Violation,
    encode,
)
from state.divergence import FIELDS, INVARIANTS
from state.entity import entity_id_of


class Part(NamedTuple):
    """One encoded decision with its place, or a run of them (``state.runs``)."""

    seq: int
    rank: int
    # In a run, topic and partition are those of the first decision. An entity has its id as topic.
    topic: str
    partition: int
    broker: int
    # Empty if there are columns.
    body: bytes
    # Of a run.
    columns: DecisionColumns | None = None


Place = tuple[int, int, str, int, int]
RANKS = {kind: rank for rank, kind in enumerate(AnyDecision.__args__)}


def part_of(decision: AnyDecision) -> Part:
    """Encode a decision with its place."""
    return Part(*place_of(decision), encode(decision))


def place_of(decision: AnyDecision) -> Place:
    """Return a decision's place: seq, then kind, topic, partition, broker. An entity's name counts as a topic."""
    rank = RANKS[type(decision)]
    if isinstance(decision, Answer):
        return decision.seq, rank, "", -1, -1
    if isinstance(decision, LeaderAndIsr | StopReplica | HighWatermark):
        return decision.seq, rank, decision.topic, decision.partition, -1
    if isinstance(decision, ConfigDecision):
        return decision.seq, rank, f"{decision.entity} {decision.name or ''}", -1, -1
    if isinstance(decision, Divergence):
        return decision.seq, rank, decision.topic, decision.partition, FIELDS.index(decision.field)
    if isinstance(decision, Violation):
        return decision.seq, rank, decision.topic, decision.partition, INVARIANTS.index(decision.invariant)
    if isinstance(decision, EntityDecision):
        return decision.seq, rank, entity_id_of(decision.entity_type, decision.names), -1, -1
    topic = getattr(decision, "topic", "") or ""
    partition = _number(getattr(decision, "partition", -1))
    broker = _number(getattr(decision, "broker", -1))
    return decision.seq, rank, topic, partition, broker


def columns_part(place: tuple[int, int], columns: DecisionColumns) -> Part:
    """Return the part of decisions in columns at a seq and rank. A single decision becomes a text."""
    first = Part(*place, columns.first_topic, columns.first_partition, -1, b"", columns)
    return first if columns.decision_count > 1 else first._replace(body=next(columns.lines(0)), columns=None)


def _number(value: int | UnsetType) -> int:
    return -1 if value is UNSET else value
