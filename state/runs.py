"""Runs: the decisions of one kind on one event, encoded together.

The problem: a lost broker leads to tens of thousands of decisions, and a storm to a few in each of thousands of topics.
Handing each of them to the sink, sorting it and putting its index into its text costs as much as deciding it.

The insight: most decisions are alike. They travel together as columns of numbers (``state.decision_columns``), topic
after topic, and the sink moves whole topics when it puts the columns of several shards in order
(``state.columns_in_order``). The others travel as lines with a blank for each index. Lines are about one topic. A topic
is in one shard, so in the canonical order nothing can come between them.

    {"kind":"leader_and_isr", … "index":%d, … "topic":"a", … "partition":0, …
    {"kind":"leader_and_isr", … "index":%d, … "topic":"a", … "partition":3, …
"""

import struct
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any, TypeVar

from msgspec.structs import replace

from state.alike import (
    AlikeDecision,
    Said,
    TopicWatermarks,
    encoded_about,
    encoded_name,
    row_of,
    told_of,
    watermarks_of,
    with_blank_index,
)
from state.chunks import chunks
from state.decision_columns import ROWS_MAX, SILENT, Columns, ReasonCount, packed
from state.decisions import HighWatermark, LeaderAndIsr, StopReplica, encode
from state.part import RANKS, Part, columns_part, part_of

# Of one topic. These decisions are never divided on their way to the sink.
RUN_DECISIONS_MAX = 1_024
# With fewer decisions for each pattern of an event, lines take less time than columns.
ROWS_PER_PATTERN_MIN = 2
_partition = attrgetter("partition")
# The end of a high watermark's text.
_WATERMARK = b'"topic":"","partition":0,"leader_epoch":0,"high_watermark":0}'
_BLANK_WATERMARK = b'"topic":%b' + SILENT + b',"partition":%d,"leader_epoch":%d,"high_watermark":%d}'

_Plain = LeaderAndIsr | StopReplica
_Row = AlikeDecision | _Plain | HighWatermark
# The seq and rank of decisions.
_Place = tuple[int, int]
# Decisions and their topic.
_About = tuple[str, Sequence[AlikeDecision]]
_T = TypeVar("_T")


def parts_of(said: Iterable[Said]) -> list[Part]:
    """Encode decisions, as runs where there are several of one kind on one event.

    If two have one place in the canonical order, both are parts of their own, so that ``parts_clash`` finds them.
    """
    parts: list[Part] = []
    # By place, and by topic.
    alike: defaultdict[_Place, defaultdict[str, list[AlikeDecision]]] = defaultdict(_lists)
    plain: defaultdict[_Place, defaultdict[str, list[_Plain]]] = defaultdict(_lists)
    marks: defaultdict[_Place, defaultdict[str, list[TopicWatermarks]]] = defaultdict(_lists)
    single_marks: defaultdict[_Place, defaultdict[str, list[HighWatermark]]] = defaultdict(_lists)
    # Most rows belong where the one before did.
    place, topic, rows = (-1, -1), "", list[AlikeDecision]()
    for one in said:
        if isinstance(one, AlikeDecision):
            pattern = one.pattern
            if one.topic is not topic or pattern.place is not place:
                place, topic = pattern.place, one.topic
                rows = alike[place][topic]
            rows.append(one)
        elif isinstance(one, TopicWatermarks):
            marks[_place_of(one.common)][one.topic].append(one)
        elif isinstance(one, HighWatermark):
            single_marks[_place_of(one)][one.topic].append(one)
        elif isinstance(one, LeaderAndIsr | StopReplica):
            plain[_place_of(one)][one.topic].append(one)
        else:
            parts.append(part_of(one))
    for place in dict.fromkeys((*marks, *single_marks)):
        parts += _watermarks(place, marks[place], single_marks[place])
    for place in dict.fromkeys((*alike, *plain)):
        parts += _others(place, alike[place], plain[place])
    return parts


def _lists() -> defaultdict[str, list[Any]]:
    return defaultdict(list)


def _place_of(decision: _Plain | HighWatermark) -> _Place:
    return decision.seq, RANKS[type(decision)]


def _watermarks(
    place: _Place, marked: Mapping[str, list[TopicWatermarks]], single: Mapping[str, list[HighWatermark]]
) -> Iterator[Part]:
    """Encode the high watermarks that one event moves."""
    joined: list[tuple[TopicWatermarks, int]] = []
    for topic in sorted({*marked, *single}):
        found = marked.get(topic, [])
        if topic in single or len(found) > 1:
            rows = [*single.get(topic, ()), *(mark for one in found for mark in watermarks_of(one))]
            if _clash(rows):
                yield from map(part_of, rows)
                continue
            found = [_in_columns(sorted(rows, key=_partition))]
        joined += [(one, len(one.partitions)) for one in _cut_columns(found[0])]
    for some in chunks(joined, ROWS_MAX):
        yield from _marks_in_columns(place, some)


def _in_columns(rows: Sequence[HighWatermark]) -> TopicWatermarks:
    return TopicWatermarks(
        replace(rows[0], topic="", partition=0, leader_epoch=0, high_watermark=0),
        rows[0].topic,
        [row.partition for row in rows],
        [row.leader_epoch for row in rows],
        [row.high_watermark for row in rows],
    )


def _cut_columns(marks: TopicWatermarks) -> list[TopicWatermarks]:
    if len(marks.partitions) <= RUN_DECISIONS_MAX:
        return [marks]
    columns = (marks.partitions, marks.leader_epochs, marks.high_watermarks)
    return [TopicWatermarks(marks.common, marks.topic, *some) for some in zip(*map(_cut, columns), strict=True)]


def _marks_in_columns(place: _Place, some: Sequence[TopicWatermarks]) -> Iterator[Part]:
    """Encode high watermarks, which differ in their topic and their last three values alone."""
    common = some[0].common
    partitions = list(chain.from_iterable([marks.partitions for marks in some]))
    try:
        numbers = packed(
            partitions,
            [0] * len(partitions),
            list(chain.from_iterable([marks.leader_epochs for marks in some])),
            list(chain.from_iterable([marks.high_watermarks for marks in some])),
        )
    except struct.error:
        for marks in some:
            yield from _in_lines(place, marks.topic, watermarks_of(marks))
        return
    text = with_blank_index(encode(common).removesuffix(_WATERMARK))
    topics = [marks.topic for marks in some]
    names = [name for topic in topics for name in (encoded_name(topic), b"")]
    counts = [len(marks.partitions) for marks in some]
    columns = Columns([text + _BLANK_WATERMARK], [told_of(common)], topics, names, counts, numbers)
    yield columns_part(place, columns)


def _others(place: _Place, alike: dict[str, list[AlikeDecision]], plain: Mapping[str, list[_Plain]]) -> Iterator[Part]:
    """Encode what is said about the leaders and replicas of partitions on one event."""
    has_few_patterns = _has_few_patterns(alike)
    for topic, some in plain.items():
        if has_few_patterns and ROWS_PER_PATTERN_MIN * len(some) <= len(alike.get(topic, ())):
            alike[topic] += map(row_of, some)
        else:
            yield from _in_lines(place, topic, [*some, *alike.pop(topic, ())])
    joined: list[tuple[_About, int]] = []
    for topic, rows in sorted(alike.items()):
        if not has_few_patterns or _clash(rows) or _have_several_ids(rows):
            yield from _in_lines(place, topic, rows)
        else:
            joined += [((topic, cut), len(cut)) for cut in _cut(sorted(rows, key=_partition))]
    for chunk in chunks(joined, ROWS_MAX):
        yield from _alike_in_columns(place, chunk)


def _has_few_patterns(alike: Mapping[str, Sequence[AlikeDecision]]) -> bool:
    """Return whether the decisions on an event share patterns.

    Columns gain nothing where nearly each decision has a pattern of its own, as when a topic is created, because its
    partitions have different replicas.
    """
    patterns = {id(row.pattern) for rows in alike.values() for row in rows}
    return ROWS_PER_PATTERN_MIN * len(patterns) <= sum(map(len, alike.values()))


def _clash(rows: Sequence[_Row]) -> bool:
    return len({row.partition for row in rows}) < len(rows)


def _have_several_ids(rows: Sequence[AlikeDecision]) -> bool:
    return len({row.topic_id for row in rows}) > 1


def _cut(rows: Sequence[_T]) -> list[Sequence[_T]]:
    if len(rows) <= RUN_DECISIONS_MAX:
        return [rows]
    return [rows[start : start + RUN_DECISIONS_MAX] for start in range(0, len(rows), RUN_DECISIONS_MAX)]


def _alike_in_columns(place: _Place, some: Sequence[_About]) -> Iterator[Part]:
    """Encode decisions that have a pattern each."""
    rows = list(chain.from_iterable([rows for _, rows in some]))
    ids = [id(row.pattern) for row in rows]
    patterns = {one: row.pattern for one, row in zip(ids, rows, strict=True)}
    places = dict(zip(patterns, range(len(patterns)), strict=True))
    try:
        numbers = packed(
            [row.partition for row in rows],
            [places[one] for one in ids],
            [row.leader_epoch for row in rows],
            [row.partition_epoch for row in rows],
        )
    except struct.error:
        # Numbers that are greater than Kafka's fit into no column.
        for topic, about in some:
            yield from _in_lines(place, topic, about)
        return
    texts = [pattern.text for pattern in patterns.values()]
    told = [pattern.told for pattern in patterns.values()]
    names = [encoded_name(name) for topic, about in some for name in (topic, about[0].topic_id)]
    counts = [len(about) for _, about in some]
    yield columns_part(place, Columns(texts, told, [topic for topic, _ in some], names, counts, numbers))


def _in_lines(place: _Place, topic: str, rows: Sequence[_Row]) -> Iterator[Part]:
    if _clash(rows):
        yield from map(part_of, rows)
        return
    for some in _cut(sorted(rows, key=_partition)):
        yield part_of(some[0]) if len(some) == 1 else _lines(place, topic, some)


def _lines(place: _Place, topic: str, rows: Sequence[_Row]) -> Part:
    name = encoded_name(topic)
    lines = [
        with_blank_index(
            encoded_about(row, name, encoded_name(row.topic_id)) if isinstance(row, AlikeDecision) else encode(row)
        )
        for row in rows
    ]
    told = Counter([row.pattern.told if isinstance(row, AlikeDecision) else told_of(row) for row in rows])
    counts = tuple([ReasonCount(*one, count) for one, count in sorted(told.items())])
    return Part(*place, topic, rows[0].partition, -1, b"\n".join(lines), len(rows), counts)
