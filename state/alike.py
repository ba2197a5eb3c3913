"""Decisions that are alike: a form with blanks, and a row of values for each.

A lost broker changes tens of thousands of partitions, but in a few ways. Decisions of one form differ in the event, in
the topic, partition and epochs, and in which brokers have the replicas. A form is encoded once, with a blank for each
of these. So a decision costs a row and the values in its text.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import asdict, replace

from isrflow.decision_columns import SILENT, line, replica_blank
from state.decisions import KIND_RANK, AnyDecision, HighWatermark, LeaderAndIsr, StopReplica, decode, encode
from state.ids import NO_LEADER
from state.reason import Reason

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

    # Has blanks for a ``Saying`` and, doubled where they begin with "%", those of ``isrflow.decision_columns``.
    text: bytes
    # Of its decisions in the canonical order.
    rank: int
    is_unclean: bool

    def on(self, saying: Saying) -> bytes:
        """Return the text for one event, with the blanks of ``isrflow.decision_columns``."""
        return self.text % saying


# A topic, then its name and its id as they are in a text. High watermarks do not name the id.
Named = tuple[str, bytes, bytes]
# A partition, the form, whose replicas these are, the leader epoch, and the partition epoch or high watermark.
Row = tuple[Named, int, Form, Ids, int, int]


class AlikeDecisions(msgspec.Struct, frozen=True, gc=False):
    """Decisions of one kind on one event about partitions, as rows of values that fill in forms."""

    saying: Saying
    # In the canonical order.
    rank: int
    rows: list[Row]


Said = AnyDecision | AlikeDecisions
_Formed = LeaderAndIsr | StopReplica | HighWatermark


def form_of(decision: LeaderAndIsr | StopReplica, replicas: Ids) -> Form | None:
    """Return the form of decisions like ``decision``; None if it names a broker that has no replica."""
    marks = {replica: _FIRST_MARK + place for place, replica in enumerate(replicas[:_PLACES_MAX])}
    marks[NO_LEADER] = NO_LEADER
    try:
        return _form_of(decision, marks)
    except KeyError:
        return None


def _form_of(decision: _Formed, marks: Mapping[int, int]) -> Form:
    blank = {name: _blank(name, value, marks) for name, value in asdict(decision).items()}
    # These kinds of decisions have no free text, which might look like the fields that are replaced.
    text = encode(type(decision)(**blank)).replace(b"%", b"%%%%")
    for field, blanks in _BLANKS:
        text = text.replace(field, blanks, 1)
    if isinstance(decision, StopReplica):
        text += _SILENT
    text = _MARKED.sub(lambda found: replica_blank(int(found[1])), text)
    return Form(text, _RANKS[type(decision)], getattr(decision, "unclean", False))


_SILENT = SILENT.replace(b"%", b"%%")
_RANKS = {kind: KIND_RANK[str(kind.__struct_config__.tag)] for kind in (LeaderAndIsr, StopReplica, HighWatermark)}
_BLANKS = (
    (
        b'"seq":0,"index":0,"controller_epoch":0,"time_ms":0',
        b'"seq":%d,"index":%%d,"controller_epoch":%d,"time_ms":%d',
    ),
    (b',"topic":"","topic_id":"","partition":0', b'%b,"topic":%%b,"topic_id":%%b,"partition":%%d'),
    (b',"topic":"","partition":0', b'%b,"topic":%%b' + _SILENT + b',"partition":%%d'),
    (b'"leader_epoch":0', b'"leader_epoch":%%d'),
    (b'"partition_epoch":0', b'"partition_epoch":%%d'),
    (b'"high_watermark":0', b'"high_watermark":%%d'),
)
_TEXTS = ("topic", "topic_id")
_NUMBERS = (
    *("seq", "index", "controller_epoch", "time_ms"),
    *("partition", "leader_epoch", "partition_epoch", "high_watermark"),
)


def _blank(name: str, value: Any, marks: Mapping[int, int]) -> Any:
    """Return a field's value without what a row has, and with a mark for each broker.

    All lists of numbers, and all maps, are about brokers.
    """
    if name in _NUMBERS:
        return 0
    if name in _TEXTS:
        return ""
    if name == "leader":
        return marks[value]
    if isinstance(value, tuple):
        return tuple([marks[broker] for broker in value])
    return {marks[broker]: told for broker, told in value.items()} if isinstance(value, dict) else value


# The form of all high watermarks.
WATERMARK = _form_of(
    HighWatermark(
        seq=0,
        controller_epoch=0,
        time_ms=0,
        reason=Reason.REPLICATED,
        topic="",
        partition=0,
        leader_epoch=0,
        high_watermark=0,
    ),
    {},
)


def named_in_text(topic: str, topic_id: str) -> Named:
    """Return a topic with its name and id as they are in a text."""
    return topic, encoded_name(topic), encoded_name(topic_id) if topic_id else b""


def with_blank_index(text: bytes) -> bytes:
    """Return a decision's text as a format with a blank index. Percent signs are doubled."""
    # The first "index" is the decision's own, because it comes before any free text.
    return text.replace(b"%", b"%%").replace(b'"index":0', b'"index":%d', 1)


def named(said: Iterable[Said], principal: str) -> list[Said]:
    """Return decisions with the principal of the admin who asked for them."""
    field = (b',"principal":%b' % encoded_name(principal)).replace(b"%", b"%%")
    return [
        replace(one, saying=one.saying._replace(principal=field))
        if isinstance(one, AlikeDecisions)
        else replace(one, principal=principal)
        for one in said
    ]


def decisions_of(said: Iterable[Said]) -> list[AnyDecision]:
    """Write all rows out."""
    decisions: list[AnyDecision] = []
    for one in said:
        decisions += map(decode, encoded(one)) if isinstance(one, AlikeDecisions) else [one]
    return decisions


def encoded(alike: AlikeDecisions) -> list[bytes]:
    """Return what ``encode`` does for the decisions, which have the index 0 until they are numbered."""
    return [
        line(form.on(alike.saying), (0, *topic[1:], partition, *numbers, *replicas))
        for topic, partition, form, replicas, *numbers in alike.rows
    ]
