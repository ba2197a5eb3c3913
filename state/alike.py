"""Decisions that differ in topic, partition and epochs alone: a pattern, and a row of values for each.

A lost broker changes tens of thousands of partitions, but in a few hundred ways. The pattern holds what such
decisions have in common, and it is encoded once. A decision then costs a row and the numbers in its text.
"""

from collections.abc import Iterable
from functools import lru_cache

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from state.decision_columns import SILENT, CountedBy
from state.decisions import KIND_RANK, AnyDecision, HighWatermark, LeaderAndIsr, StopReplica, encode

# Writes a name as it is in a decision's text.
encoded_name = msgspec.json.Encoder().encode
# The part of a pattern's text that depends on the event.
_EVENT = b'"seq":%d,"index":%%d,"controller_epoch":%d,"time_ms":%d,"reason":'


class Pattern(msgspec.Struct, frozen=True, gc=False):
    """What decisions of one event have in common."""

    # Its topic, partition and epochs are blank.
    common: LeaderAndIsr | StopReplica
    # The text of ``common``, with the blanks of ``state.decision_columns``.
    text: bytes
    # The seq and the rank of its decisions in the canonical order. Patterns of one event and kind share this object.
    place: tuple[int, int]
    told: CountedBy


class AlikeDecision(msgspec.Struct, frozen=True, gc=False):
    """A row: one decision, as the values that fill in a pattern."""

    pattern: Pattern
    topic: str
    topic_id: str
    partition: int
    leader_epoch: int
    partition_epoch: int


class TopicWatermarks(msgspec.Struct, frozen=True, gc=False):
    """The high watermarks of some partitions of a topic on one event, as columns."""

    # Its topic and numbers are blank.
    common: HighWatermark
    topic: str
    # Distinct and rising.
    partitions: list[int]
    # One for each partition.
    leader_epochs: list[int]
    high_watermarks: list[int]


Said = AnyDecision | AlikeDecision | TopicWatermarks


def pattern_of(decision: LeaderAndIsr | StopReplica) -> Pattern:
    """Return the pattern of decisions like ``decision``."""
    common = replace(decision, topic="", topic_id="", partition=0, leader_epoch=0)
    if isinstance(common, LeaderAndIsr):
        common = replace(common, partition_epoch=0)
    # These two kinds of decisions have no free text, which might look like the fields that are replaced.
    text = with_blank_index(encode(common))
    text = text.replace(b'"topic":"","topic_id":"","partition":0', b'"topic":%b,"topic_id":%b,"partition":%d', 1)
    text = text.replace(b'"leader_epoch":0', b'"leader_epoch":%d', 1)
    if isinstance(common, LeaderAndIsr):
        text = text.replace(b'"partition_epoch":0', b'"partition_epoch":%d', 1)
    else:
        text += SILENT
    return Pattern(common, text, _place(common.seq, type(common)), told_of(decision))


def with_blank_index(text: bytes) -> bytes:
    """Return a decision's text as a format with a blank index. Percent signs are doubled."""
    # The first "index" is the decision's own, because it comes before any free text.
    return text.replace(b"%", b"%%").replace(b'"index":0', b'"index":%d', 1)


def told_of(decision: LeaderAndIsr | StopReplica | HighWatermark) -> CountedBy:
    """Return the values that a decision is counted by."""
    if isinstance(decision, LeaderAndIsr):
        return CountedBy(str(decision.reason), decision.unclean, decision.passed_over is not UNSET)
    return CountedBy(str(decision.reason), unclean=False, passes_over=False)


@lru_cache(maxsize=64)
def _place(seq: int, kind: type[LeaderAndIsr | StopReplica]) -> tuple[int, int]:
    return seq, KIND_RANK["leader_and_isr" if kind is LeaderAndIsr else "stop_replica"]


# The patterns of an event follow one another, and so do those of the event before it.
@lru_cache(maxsize=64)
def _event_text(seq: int, controller_epoch: int, time_ms: int) -> bytes:
    return _EVENT % (seq, controller_epoch, time_ms)


def pattern_on(pattern: Pattern, *, seq: int, controller_epoch: int, time_ms: int) -> Pattern:
    """Return the pattern for the decisions that another event leads to."""
    former = pattern.common
    common = replace(former, seq=seq, controller_epoch=controller_epoch, time_ms=time_ms)
    was = _event_text(former.seq, former.controller_epoch, former.time_ms)
    text = pattern.text.replace(was, _event_text(seq, controller_epoch, time_ms), 1)
    return Pattern(common, text, _place(seq, type(common)), pattern.told)


def named(said: Iterable[Said], principal: str) -> list[Said]:
    """Return decisions with the principal of the admin who asked for them."""
    # Later events may share a pattern, so it is copied. The rows keep the patterns alive, so their ids stay unique.
    copies: dict[int, Pattern] = {}
    result: list[Said] = []
    for one in said:
        if isinstance(one, AlikeDecision):
            pattern = copies.get(id(one.pattern))
            if pattern is None:
                pattern = copies[id(one.pattern)] = pattern_of(replace(one.pattern.common, principal=principal))
            result.append(replace(one, pattern=pattern))
        elif isinstance(one, TopicWatermarks):
            result.append(replace(one, common=replace(one.common, principal=principal)))
        else:
            result.append(replace(one, principal=principal))
    return result


def row_of(decision: LeaderAndIsr | StopReplica) -> AlikeDecision:
    """Make a row of a decision, with a pattern of its own."""
    partition_epoch = decision.partition_epoch if isinstance(decision, LeaderAndIsr) else 0
    return AlikeDecision(
        pattern_of(decision),
        decision.topic,
        decision.topic_id,
        decision.partition,
        decision.leader_epoch,
        partition_epoch,
    )


def decision_of(row: AlikeDecision) -> LeaderAndIsr | StopReplica:
    """Write a row out as a decision."""
    values = {
        "topic": row.topic,
        "topic_id": row.topic_id,
        "partition": row.partition,
        "leader_epoch": row.leader_epoch,
    }
    if isinstance(row.pattern.common, LeaderAndIsr):
        values["partition_epoch"] = row.partition_epoch
    return replace(row.pattern.common, **values)


def watermarks_of(marks: TopicWatermarks) -> list[HighWatermark]:
    """Write columns of high watermarks out as decisions."""
    rows = zip(marks.partitions, marks.leader_epochs, marks.high_watermarks, strict=True)
    return [
        replace(marks.common, topic=marks.topic, partition=partition, leader_epoch=epoch, high_watermark=mark)
        for partition, epoch, mark in rows
    ]


def decisions_of(said: Iterable[Said]) -> list[AnyDecision]:
    """Write all rows and columns out."""
    decisions: list[AnyDecision] = []
    for one in said:
        if isinstance(one, AlikeDecision):
            decisions.append(decision_of(one))
        elif isinstance(one, TopicWatermarks):
            decisions += watermarks_of(one)
        else:
            decisions.append(one)
    return decisions


def encoded(row: AlikeDecision) -> bytes:
    """Return what ``encode`` does for a row's decision, which has the index 0 until it is numbered."""
    return encoded_about(row, encoded_name(row.topic), encoded_name(row.topic_id))


def encoded_about(row: AlikeDecision, topic: bytes, topic_id: bytes) -> bytes:
    """Return what ``encoded`` does, given the topic's encoded name and id."""
    return row.pattern.text % (0, topic, topic_id, row.partition, row.leader_epoch, row.partition_epoch)
