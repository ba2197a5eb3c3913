"""Runs: the decisions of one kind on one event about one topic, encoded together.

The problem: a lost broker leads to tens of thousands of decisions. Handing each of them to the sink, sorting it and
putting its index into its text costs as much as deciding it.

The insight: a topic is in one shard, so in the canonical order nothing can come between the decisions of one kind on
one event about one topic. They are neighbours, whatever the other shards say. So they travel as one part, with one
place for all of them. Decisions that are alike travel as columns of numbers (``state.decision_columns``), and the
others as lines with a blank for each index.

    {"kind":"leader_and_isr", … "index":%d, … "topic":"a", … "partition":0, …
    {"kind":"leader_and_isr", … "index":%d, … "topic":"a", … "partition":3, …
"""

import contextlib
import struct
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter

from msgspec.structs import replace

from state.alike import (
    AlikeDecision,
    Pattern,
    Said,
    TopicWatermarks,
    encoded,
    encoded_about,
    encoded_name,
    told_of,
    watermarks_of,
)
from state.canonical import Part, part_of
from state.decision_columns import SILENT, Columns, packed
from state.decisions import KIND_RANK, HighWatermark, LeaderAndIsr, StopReplica, encode
from state.numbered_run import ReasonCount

# A run is never divided on its way to the sink.
RUN_DECISIONS_MAX = 1_024
# Runs share a table of texts until it is this large, so that a row of Spark's has a bound.
TEXTS_BYTES_MAX = 1024 * 1024
# With fewer decisions for each pattern of an event, lines take less time than columns.
ROWS_PER_PATTERN_MIN = 2
_RANKS = {
    LeaderAndIsr: KIND_RANK["leader_and_isr"],
    StopReplica: KIND_RANK["stop_replica"],
    HighWatermark: KIND_RANK["high_watermark"],
}
_partition = attrgetter("partition")
_Told = tuple[str, bool, bool]
# The end of a high watermark's text.
_WATERMARK = b'"topic":"","partition":0,"leader_epoch":0,"high_watermark":0}'
_BLANK_WATERMARK = b'"topic":%b' + SILENT + b',"partition":%d,"leader_epoch":%d,"high_watermark":%d}'

_Plain = LeaderAndIsr | StopReplica | HighWatermark
_Row = AlikeDecision | _Plain
# The seq and rank of decisions, and their topic.
_Key = tuple[tuple[int, int], str]


def parts_of(said: Iterable[Said]) -> list[Part]:
    """Encode decisions, as runs where there are several about one topic.

    If two have one place, both are parts of their own, so that ``parts_clash`` finds them.
    """
    parts: list[Part] = []
    alike: defaultdict[_Key, list[AlikeDecision]] = defaultdict(list)
    plain: defaultdict[_Key, list[_Plain]] = defaultdict(list)
    marks: defaultdict[_Key, list[TopicWatermarks]] = defaultdict(list)
    # Patterns by their identity, which the decisions keep, and the event and kind of each.
    patterns: dict[int, tuple[int, int]] = {}
    # Most rows belong where the one before did.
    place, topic, rows = (-1, -1), "", list[AlikeDecision]()
    for one in said:
        if isinstance(one, AlikeDecision):
            pattern = one.pattern
            if one.topic is not topic or pattern.place is not place:
                place, topic = pattern.place, one.topic
                rows = alike[place, topic]
            patterns[id(pattern)] = place
            rows.append(one)
        elif isinstance(one, TopicWatermarks):
            marks[(one.common.seq, _RANKS[HighWatermark]), one.topic].append(one)
        elif isinstance(one, LeaderAndIsr | StopReplica | HighWatermark):
            plain[(one.seq, _RANKS[type(one)]), one.topic].append(one)
        else:
            parts.append(part_of(one))
    tables = _Tables(_places_with_few_patterns(alike, Counter(patterns.values())))
    for key, columns in marks.items():
        if len(columns) == 1 and key not in plain and _is_run(columns[0]):
            with contextlib.suppress(struct.error):
                parts.append(_watermarks(key, columns[0], tables))
                continue
        plain[key] += [mark for one in columns for mark in watermarks_of(one)]
    for key, some in alike.items():
        parts += _runs(key, [*some, *plain.pop(key)] if key in plain else some, tables)
    for key, others in plain.items():
        parts += _runs(key, others, tables)
    return parts


def _places_with_few_patterns(
    alike: Mapping[_Key, Sequence[AlikeDecision]], patterns: Mapping[tuple[int, int], int]
) -> set[tuple[int, int]]:
    """Return the events and kinds whose decisions share patterns. ``patterns`` counts those of each.

    Columns gain nothing where nearly each decision has a pattern of its own, as when a topic is created, because its
    partitions have different replicas.
    """
    rows: Counter[tuple[int, int]] = Counter()
    for (place, _), some in alike.items():
        rows[place] += len(some)
    return {place for place, count in patterns.items() if ROWS_PER_PATTERN_MIN * count <= rows[place]}


def _is_run(marks: TopicWatermarks) -> bool:
    return 1 < len(marks.partitions) <= RUN_DECISIONS_MAX


def _runs(key: _Key, rows: Sequence[_Row], tables: "_Tables") -> Iterator[Part]:
    partitions = [row.partition for row in rows]
    if len(set(partitions)) < len(rows):
        yield from map(part_of, rows)
        return
    if partitions != sorted(partitions):
        rows = sorted(rows, key=_partition)
    for start in range(0, len(rows), RUN_DECISIONS_MAX):
        some = rows[start : start + RUN_DECISIONS_MAX] if len(rows) > RUN_DECISIONS_MAX else rows
        yield _run(key, some, tables)


def _run(key: _Key, rows: Sequence[_Row], tables: "_Tables") -> Part:
    if len(rows) == 1:
        return Part(*key[0], key[1], rows[0].partition, -1, _text(rows[0]))
    try:
        if isinstance(rows[0], HighWatermark):
            return _watermarks(key, _in_columns([row for row in rows if isinstance(row, HighWatermark)]), tables)
        if key[0] in tables.places_with_few_patterns:
            alike = [row for row in rows if isinstance(row, AlikeDecision)]
            ids = [row.topic_id for row in alike]
            if len(alike) == len(rows) and ids.count(ids[0]) == len(ids):
                return _alike(key, alike, tables)
    except struct.error:
        pass  # Numbers that are greater than those of Kafka fit into no column.
    return _in_lines(key, rows)


def _alike(key: _Key, rows: Sequence[AlikeDecision], tables: "_Tables") -> Part:
    """Make a run of rows that have a pattern each, and the same topic id."""
    texts = tables.begin_run()
    places = tables.places_of([row.pattern for row in rows])
    partitions = [row.partition for row in rows]
    numbers = packed(partitions, places, [row.leader_epoch for row in rows], [row.partition_epoch for row in rows])
    columns = Columns(texts, tables.name(key[1]), tables.name(rows[0].topic_id), numbers)
    return Part(*key[0], key[1], partitions[0], -1, b"", len(rows), tables.counts_of(places), columns)


def _in_columns(marks: Sequence[HighWatermark]) -> TopicWatermarks:
    return TopicWatermarks(
        replace(marks[0], topic="", partition=0, leader_epoch=0, high_watermark=0),
        marks[0].topic,
        [mark.partition for mark in marks],
        [mark.leader_epoch for mark in marks],
        [mark.high_watermark for mark in marks],
    )


def _watermarks(key: _Key, marks: TopicWatermarks, tables: "_Tables") -> Part:
    """Make a run of high watermarks, which differ in their last three values alone."""
    texts = tables.begin_run()
    place, count = tables.place_of_watermarks(marks.common), len(marks.partitions)
    numbers = packed(marks.partitions, [place] * count, marks.leader_epochs, marks.high_watermarks)
    columns = Columns(texts, tables.name(key[1]), b"", numbers)
    counts = (ReasonCount(*told_of(marks.common), count),)
    return Part(*key[0], key[1], marks.partitions[0], -1, b"", count, counts, columns)


def _in_lines(key: _Key, rows: Sequence[_Row]) -> Part:
    """Make a run of lines. A percent sign is doubled, because the text is a format."""
    # The first "index" is the decision's own, because it comes before any free text.
    name = encoded_name(key[1])
    lines = [
        (encoded_about(row, name, encoded_name(row.topic_id)) if isinstance(row, AlikeDecision) else encode(row))
        .replace(b"%", b"%%")
        .replace(b'"index":0', b'"index":%d', 1)
        for row in rows
    ]
    told = Counter([row.pattern.told if isinstance(row, AlikeDecision) else told_of(row) for row in rows])
    counts = tuple([ReasonCount(*one, count) for one, count in sorted(told.items())])
    return Part(*key[0], key[1], rows[0].partition, -1, b"\n".join(lines), len(rows), counts)


def _text(row: _Row) -> bytes:
    return encoded(row) if isinstance(row, AlikeDecision) else encode(row)


class _Tables:
    """The tables of texts that runs share, one after the other."""

    def __init__(self, places_with_few_patterns: set[tuple[int, int]]) -> None:
        self.places_with_few_patterns = places_with_few_patterns
        # A topic has runs on many events.
        self._names: dict[str, bytes] = {}
        self._begin()

    def name(self, name: str) -> bytes:
        """Return a topic's name or id as it is in a decision's text."""
        found = self._names.get(name)
        if found is None:
            found = self._names[name] = encoded_name(name)
        return found

    def _begin(self) -> None:
        self._texts: list[bytes] = []
        # What decisions are counted by, and of each text the place there. These are few.
        self._told: list[_Told] = []
        self._told_by: list[int] = []
        # By the identity of a pattern, which the decisions keep, or by the text of watermarks.
        self._places: dict[int | bytes, int] = {}
        self._bytes = 0

    def begin_run(self) -> list[bytes]:
        """Return the table of the run that follows."""
        if self._bytes > TEXTS_BYTES_MAX:
            self._begin()
        return self._texts

    def places_of(self, patterns: list[Pattern]) -> list[int]:
        """Return the place of each pattern's text."""
        places = self._places
        try:
            return [places[id(pattern)] for pattern in patterns]
        except KeyError:
            for pattern in patterns:
                if id(pattern) not in places:
                    self._added(id(pattern), pattern.text, pattern.told)
        return [places[id(pattern)] for pattern in patterns]

    def place_of_watermarks(self, common: HighWatermark) -> int:
        """Return the place of the text that the high watermarks of one event share. Its topic and numbers are blank."""
        blank = encode(common)
        place = self._places.get(blank)
        if place is not None:
            return place
        text = blank.removesuffix(_WATERMARK).replace(b"%", b"%%").replace(b'"index":0', b'"index":%d', 1)
        return self._added(blank, text + _BLANK_WATERMARK, told_of(common))

    def _added(self, key: int | bytes, text: bytes, told: _Told) -> int:
        self._texts.append(text)
        if told not in self._told:
            self._told.append(told)
        self._told_by.append(self._told.index(told))
        self._bytes += len(text)
        place = self._places[key] = len(self._texts) - 1
        return place

    def counts_of(self, places: list[int]) -> tuple[ReasonCount, ...]:
        """Count decisions, of which each has its text at one of ``places``."""
        if len(self._told) == 1:
            return (ReasonCount(*self._told[0], len(places)),)
        told_by = [self._told_by[place] for place in places]
        counted = [(told, count) for nth, told in enumerate(self._told) if (count := told_by.count(nth))]
        return tuple([ReasonCount(*told, count) for told, count in sorted(counted)])
