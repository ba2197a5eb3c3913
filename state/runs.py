"""Runs: the decisions of one kind on one event, encoded together.

The problem: a lost broker leads to tens of thousands of decisions, and a storm to a few in each of thousands of topics.
Handing each of them to the sink, sorting it and putting its index into its text costs as much as deciding it.

The insight: decisions of one kind differ in a few numbers. They travel together as columns of numbers
(``state.decision_columns``), topic after topic, and the sink moves whole topics when it puts the columns of several
shards in order (``state.columns_in_order``). A topic is in one shard, so in the canonical order nothing can come
between its decisions.
"""

import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat

from state.alike import (
    AlikeDecision,
    Ids,
    Said,
    TopicWatermarks,
    encoded_name,
    told_of,
    with_blank_index,
)
from state.chunks import chunks
from state.decision_columns import BLANKS, ROWS_MAX, SILENT, Columns, CountedBy, packed
from state.decisions import HighWatermark, LeaderAndIsr, StopReplica, encode
from state.part import RANKS, Part, columns_part, part_of

# Of one topic. These decisions are never divided on their way to the sink.
RUN_DECISIONS_MAX = 1_024
# The end of a high watermark's text.
_WATERMARK = b'"topic":"","partition":0,"leader_epoch":0,"high_watermark":0}'
_BLANK_WATERMARK = b'"topic":%b' + SILENT + b',"partition":%d,"leader_epoch":%d,"high_watermark":%d}'
# What follows a text that has its own values. Its index alone is blank.
_NO_BLANKS = SILENT * (BLANKS - 1)

# Partition, place of the text, leader epoch, and partition epoch or high watermark.
_Row = tuple[int, int, int, int]
# A topic and its id.
_About = tuple[str, str]


def parts_of(said: Iterable[Said]) -> list[Part]:
    """Encode decisions, as runs where they are about partitions.

    If two have one place in the canonical order, both are parts of their own, so that ``parts_clash`` finds them.
    """
    parts: list[Part] = []
    # By seq and rank.
    runs: defaultdict[tuple[int, int], _Decided] = defaultdict(_Decided)
    for one in said:
        if isinstance(one, AlikeDecision):
            runs[one.saying.seq, one.form.rank].add_alike(one)
        elif isinstance(one, TopicWatermarks):
            runs[one.common.seq, RANKS[HighWatermark]].add_watermarks(one)
        elif isinstance(one, LeaderAndIsr | StopReplica | HighWatermark):
            runs[one.seq, RANKS[type(one)]].add(one)
        else:
            parts.append(part_of(one))
    for place, decided in runs.items():
        parts += decided.parts(place)
    return parts


class _Decided:
    """The decisions of one kind on one event."""

    def __init__(self) -> None:
        # Each has the blanks of ``column_layout``.
        self._texts: list[bytes] = []
        self._told: list[CountedBy] = []
        # By the ids of form and saying, and by replicas: the place of the text.
        self._places: dict[tuple[int, int, Ids], int] = {}
        self._rows: defaultdict[_About, list[_Row]] = defaultdict(list)

    def add(self, decision: LeaderAndIsr | StopReplica | HighWatermark) -> None:
        """Add a decision that has a text of its own. Its columns have what the text says, because readers use them."""
        topic_id, last_value = "", 0
        if isinstance(decision, HighWatermark):
            last_value = decision.high_watermark
        else:
            topic_id = decision.topic_id
        if isinstance(decision, LeaderAndIsr):
            last_value = decision.partition_epoch
        place = self._add_text(with_blank_index(encode(decision)) + _NO_BLANKS, told_of(decision))
        row = (decision.partition, place, decision.leader_epoch, last_value)
        self._rows[decision.topic, topic_id].append(row)

    def add_alike(self, row: AlikeDecision) -> None:
        form = row.form
        key = (id(form), id(row.saying), row.replicas)
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = self._add_text(form.on(row.saying, row.replicas), form.told)
        self._rows[row.topic, row.topic_id].append((row.partition, place, row.leader_epoch, row.partition_epoch))

    def add_watermarks(self, marks: TopicWatermarks) -> None:
        """Add high watermarks, which differ in their topic and their last three values alone."""
        text = with_blank_index(encode(marks.common).removesuffix(_WATERMARK)) + _BLANK_WATERMARK
        if text not in self._texts[-1:]:
            self._add_text(text, told_of(marks.common))
        place = repeat(len(self._texts) - 1)
        self._rows[marks.topic, ""] += zip(
            marks.partitions, place, marks.leader_epochs, marks.high_watermarks, strict=False
        )

    def _add_text(self, text: bytes, told: CountedBy) -> int:
        self._texts.append(text)
        self._told.append(told)
        return len(self._texts) - 1

    def parts(self, place: tuple[int, int]) -> Iterator[Part]:
        """Encode the decisions, which have this place in the canonical order."""
        joined: list[tuple[tuple[_About, Sequence[_Row]], int]] = []
        for about, rows in sorted(self._rows.items()):
            rows.sort()
            if len({row[0] for row in rows}) < len(rows):
                yield from self._one_by_one(place, about, rows)
            else:
                joined += [((about, cut), len(cut)) for cut in _cut(rows)]
        for some in chunks(joined, ROWS_MAX):
            yield from self._in_columns(place, some)

    def _in_columns(self, place: tuple[int, int], some: Sequence[tuple[_About, Sequence[_Row]]]) -> Iterator[Part]:
        partitions, texts, leader_epochs, last_values = zip(*[row for _, rows in some for row in rows], strict=True)
        used = dict.fromkeys(texts)
        places = dict(zip(used, range(len(used)), strict=True))
        try:
            numbers = packed(partitions, [places[text] for text in texts], leader_epochs, last_values)
        except struct.error:
            # Numbers that are greater than Kafka's fit into no column.
            for about, rows in some:
                yield from self._one_by_one(place, about, rows)
            return
        columns = Columns(
            [self._texts[text] for text in used],
            [self._told[text] for text in used],
            [topic for (topic, _), _ in some],
            [name for (topic, topic_id), _ in some for name in _names(topic, topic_id)],
            [len(rows) for _, rows in some],
            numbers,
        )
        yield columns_part(place, columns)

    def _one_by_one(self, place: tuple[int, int], about: _About, rows: Iterable[_Row]) -> Iterator[Part]:
        names = _names(*about)
        for partition, text, leader_epoch, last_value in rows:
            body = self._texts[text] % (0, *names, partition, leader_epoch, last_value)
            yield Part(*place, about[0], partition, -1, body)


def _names(topic: str, topic_id: str) -> tuple[bytes, bytes]:
    return encoded_name(topic), encoded_name(topic_id) if topic_id else b""


def _cut(rows: Sequence[_Row]) -> list[Sequence[_Row]]:
    if len(rows) <= RUN_DECISIONS_MAX:
        return [rows]
    return [rows[start : start + RUN_DECISIONS_MAX] for start in range(0, len(rows), RUN_DECISIONS_MAX)]
