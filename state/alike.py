"""Decisions that are alike: a form with blanks, and a row of values for each.

A lost broker changes tens of thousands of partitions, but in a few ways. Decisions of one form differ in the event, in
the topic, partition and epochs, and in which brokers have the replicas. A form is encoded once, with a blank for each
of these. So a decision costs a row and the values in its text.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET
from msgspec.structs import asdict, replace

from state.decision_columns import SILENT, CountedBy
from state.decisions import KIND_RANK, AnyDecision, HighWatermark, LeaderAndIsr, StopReplica, decode, encode
from state.ids import NO_LEADER

Ids = tuple[int, ...]
# Writes a name as it is in a decision's text.
encoded_name = msgspec.json.Encoder().encode
# Stands in a form for the replica at a place of the assignment. No other number in its text is as great.
_FIRST_MARK = 10**18
_PLACES_MAX = 1_000
_MARKED = re.compile(rb"10{15}(\d{3})(?!\d)")


class Saying(NamedTuple):
    """What all decisions on one event have in common."""

    seq: int
    controller_epoch: int
    time_ms: int
    # The field with the admin who asked, as it is in a text with blanks; empty if there is none.
    principal: bytes = b""


class Form(msgspec.Struct, frozen=True, gc=False):
    """What decisions have in common that are alike."""

    # Has blanks for a ``Saying`` and for ids, and, doubled, those of ``state.decision_columns``.
    text: bytes
    # Whose ids these are: places in the assignment.
    places: tuple[int, ...]
    # Of its decisions in the canonical order.
    rank: int
    told: CountedBy

    def on(self, saying: Saying, replicas: Ids) -> bytes:
        """Return the text for one event and some replicas, with the blanks of ``state.decision_columns``."""
        return self.text % (*saying, *[replicas[place] for place in self.places])


class AlikeDecision(msgspec.Struct, frozen=True, gc=False):
    """A row: one decision, as the values that fill in a form."""

    form: Form
    saying: Saying
    replicas: Ids
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


def form_of(decision: LeaderAndIsr | StopReplica, replicas: Ids) -> Form | None:
    """Return the form of decisions like ``decision``; None if it names a broker that has no replica."""
    marks = {replica: _FIRST_MARK + place for place, replica in enumerate(replicas[:_PLACES_MAX])}
    marks[NO_LEADER] = NO_LEADER
    blank = {"seq": 0, "controller_epoch": 0, "time_ms": 0, "topic": "", "topic_id": "", "partition": 0}
    blank |= {"leader_epoch": 0} | ({"partition_epoch": 0} if isinstance(decision, LeaderAndIsr) else {})
    try:
        marked = {name: _marked(name, value, marks) for name, value in asdict(decision).items()}
    except KeyError:
        return None
    # These two kinds of decisions have no free text, which might look like the fields that are replaced.
    text = encode(replace(decision, **marked | blank)).replace(b"%", b"%%%%")
    for field, blanks in _BLANKS:
        text = text.replace(field, blanks, 1)
    places = tuple([int(place) for place in _MARKED.findall(text)])
    if isinstance(decision, StopReplica):
        text += SILENT.replace(b"%", b"%%")
    return Form(_MARKED.sub(b"%d", text), places, _RANKS[type(decision)], told_of(decision))


_RANKS = {LeaderAndIsr: KIND_RANK["leader_and_isr"], StopReplica: KIND_RANK["stop_replica"]}
_BLANKS = (
    (
        b'"seq":0,"index":0,"controller_epoch":0,"time_ms":0',
        b'"seq":%d,"index":%%d,"controller_epoch":%d,"time_ms":%d',
    ),
    (b',"topic":"","topic_id":"","partition":0', b'%b,"topic":%%b,"topic_id":%%b,"partition":%%d'),
    (b'"leader_epoch":0', b'"leader_epoch":%%d'),
    (b'"partition_epoch":0', b'"partition_epoch":%%d'),
)


def _marked(name: str, value: Any, marks: Mapping[int, int]) -> Any:
    """Return a field's value with a mark for each broker. All lists of numbers, and all maps, are about brokers."""
    if name == "leader":
        return marks[value]
    if isinstance(value, tuple):
        return tuple([marks[broker] for broker in value])
    return {marks[broker]: told for broker, told in value.items()} if isinstance(value, dict) else value


def with_blank_index(text: bytes) -> bytes:
    """Return a decision's text as a format with a blank index. Percent signs are doubled."""
    # The first "index" is the decision's own, because it comes before any free text.
    return text.replace(b"%", b"%%").replace(b'"index":0', b'"index":%d', 1)


def told_of(decision: LeaderAndIsr | StopReplica | HighWatermark) -> CountedBy:
    """Return the values that a decision is counted by."""
    if isinstance(decision, LeaderAndIsr):
        return CountedBy(str(decision.reason), decision.unclean, decision.passed_over is not UNSET)
    return CountedBy(str(decision.reason), unclean=False, passes_over=False)


def named(said: Iterable[Said], principal: str) -> list[Said]:
    """Return decisions with the principal of the admin who asked for them."""
    field = (b',"principal":%b' % encoded_name(principal)).replace(b"%", b"%%")
    result: list[Said] = []
    for one in said:
        if isinstance(one, AlikeDecision):
            result.append(replace(one, saying=one.saying._replace(principal=field)))
        elif isinstance(one, TopicWatermarks):
            result.append(replace(one, common=replace(one.common, principal=principal)))
        else:
            result.append(replace(one, principal=principal))
    return result


def decision_of(row: AlikeDecision) -> AnyDecision:
    """Write a row out as a decision."""
    decision: AnyDecision = decode(encoded(row))
    return decision


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
    names = encoded_name(row.topic), encoded_name(row.topic_id)
    return row.form.on(row.saying, row.replicas) % (0, *names, row.partition, row.leader_epoch, row.partition_epoch)
