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

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from operator import attrgetter

from msgspec.structs import replace

from state.alike import AlikeDecision, Pattern, Said, encoded, encoded_name, told_of
from state.canonical import LEADER_AND_ISR_RANK, STOP_REPLICA_RANK, Part, part_of
from state.decision_columns import SILENT, Columns, packed
from state.decisions import KIND_RANK, HighWatermark, LeaderAndIsr, StopReplica, encode
from state.numbered_run import ReasonCount

# A run is never divided on its way to the sink.
RUN_DECISIONS_MAX = 1_024
# Runs share a table of texts until it is this large, so that a row of Spark's has a bound.
TEXTS_BYTES_MAX = 1024 * 1024
_RANKS = {
    LeaderAndIsr: LEADER_AND_ISR_RANK,
    StopReplica: STOP_REPLICA_RANK,
    HighWatermark: KIND_RANK["high_watermark"],
}
_partition = attrgetter("partition")
_Told = tuple[str, bool, bool]
# The end of a high watermark's text.
_WATERMARK = b'"topic":"","partition":0,"leader_epoch":0,"high_watermark":0}'
_BLANK_WATERMARK = b'"topic":%b' + SILENT + b',"partition":%d,"leader_epoch":%d,"high_watermark":%d}'

_Row = AlikeDecision | LeaderAndIsr | StopReplica | HighWatermark
_Key = tuple[int, int, str]


def parts_of(said: Iterable[Said]) -> list[Part]:
    """Encode decisions, as runs where there are several about one topic.

    If two have one place, both are parts of their own, so that ``parts_clash`` finds them.
    """
    parts: list[Part] = []
    rows: defaultdict[_Key, list[_Row]] = defaultdict(list)
    for one in said:
        if isinstance(one, AlikeDecision):
            pattern = one.pattern
            rank = LEADER_AND_ISR_RANK if pattern.has_partition_epoch else STOP_REPLICA_RANK
            rows[pattern.common.seq, rank, one.topic].append(one)
        elif isinstance(one, LeaderAndIsr | StopReplica | HighWatermark):
            rows[one.seq, _RANKS[type(one)], one.topic].append(one)
        else:
            parts.append(part_of(one))
    tables = _Tables()
    for key, some in rows.items():
        if len(some) == 1:
            parts.append(_single(key, some[0]))
        else:
            parts += _runs(key, some, tables)
    return parts


def _single(key: _Key, row: _Row) -> Part:
    return Part(*key, row.partition, -1, encoded(row) if isinstance(row, AlikeDecision) else encode(row))


def _runs(key: _Key, rows: list[_Row], tables: "_Tables") -> Iterator[Part]:
    if len({row.partition for row in rows}) < len(rows):
        yield from map(part_of, rows)
        return
    rows.sort(key=_partition)
    for start in range(0, len(rows), RUN_DECISIONS_MAX):
        some = rows[start : start + RUN_DECISIONS_MAX]
        if len(some) == 1:
            yield _single(key, some[0])
        elif isinstance(some[0], HighWatermark):
            yield _watermarks(key, some, tables)
        else:
            yield _alike(key, some, tables) or _in_lines(key, some)


def _alike(key: _Key, rows: list[_Row], tables: "_Tables") -> Part | None:
    """Make a run of columns; None if not all rows have a pattern and the same topic id."""
    alike = [row for row in rows if isinstance(row, AlikeDecision)]
    if len(alike) < len(rows) or len({row.topic_id for row in alike}) > 1:
        return None
    texts = tables.begin_run()
    places = tables.places_of([row.pattern for row in alike])
    partitions = [row.partition for row in alike]
    numbers = packed(partitions, places, [row.leader_epoch for row in alike], [row.partition_epoch for row in alike])
    told: Counter[_Told] = Counter()
    for place, count in Counter(places).items():
        told[tables.told_at(place)] += count
    columns = Columns(texts, encoded_name(key[2]), encoded_name(alike[0].topic_id), numbers)
    return Part(*key, partitions[0], -1, b"", len(alike), _counts(told), columns)


def _watermarks(key: _Key, rows: list[_Row], tables: "_Tables") -> Part:
    """Make a run of high watermarks, which differ in their last three values alone."""
    marks = [row for row in rows if isinstance(row, HighWatermark)]
    texts = tables.begin_run()
    place = tables.place_of_watermarks(marks[0])
    partitions = [mark.partition for mark in marks]
    numbers = packed(
        partitions,
        [place] * len(marks),
        [mark.leader_epoch for mark in marks],
        [mark.high_watermark for mark in marks],
    )
    columns = Columns(texts, encoded_name(key[2]), b"", numbers)
    counts = (ReasonCount(*told_of(marks[0]), len(marks)),)
    return Part(*key, partitions[0], -1, b"", len(marks), counts, columns)


def _in_lines(key: _Key, rows: list[_Row]) -> Part:
    """Make a run of lines. A percent sign is doubled, because the text is a format."""
    # The first "index" is the decision's own, because it comes before any free text.
    lines = [_text(row).replace(b"%", b"%%").replace(b'"index":0', b'"index":%d', 1) for row in rows]
    told = Counter([row.pattern.told if isinstance(row, AlikeDecision) else told_of(row) for row in rows])
    return Part(*key, rows[0].partition, -1, b"\n".join(lines), len(rows), _counts(told))


def _text(row: _Row) -> bytes:
    return encoded(row) if isinstance(row, AlikeDecision) else encode(row)


def _counts(told: Counter[_Told]) -> tuple[ReasonCount, ...]:
    return tuple([ReasonCount(*one, count) for one, count in sorted(told.items())])


class _Tables:
    """The tables of texts that runs share, one after the other."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._texts: list[bytes] = []
        self._told: list[_Told] = []
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
        found = []
        for pattern in patterns:
            place = places.get(id(pattern))
            found.append(self._added(id(pattern), pattern.text, pattern.told) if place is None else place)
        return found

    def place_of_watermarks(self, mark: HighWatermark) -> int:
        """Return the place of the text that the high watermarks of one event share."""
        blank = encode(replace(mark, topic="", partition=0, leader_epoch=0, high_watermark=0))
        place = self._places.get(blank)
        if place is not None:
            return place
        text = blank.removesuffix(_WATERMARK).replace(b"%", b"%%").replace(b'"index":0', b'"index":%d', 1)
        return self._added(blank, text + _BLANK_WATERMARK, told_of(mark))

    def _added(self, key: int | bytes, text: bytes, told: _Told) -> int:
        self._texts.append(text)
        self._told.append(told)
        self._bytes += len(text)
        place = self._places[key] = len(self._texts) - 1
        return place

    def told_at(self, place: int) -> _Told:
        """Return what a pattern's decisions are counted by."""
        return self._told[place]
