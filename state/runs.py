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

from state.alike import AlikeDecisions, Ids, Said, Saying, encoded_name, told_of, with_blank_index
from state.chunks import chunks
from state.decision_columns import BLANKS, ROWS_MAX, SILENT, Columns, CountedBy, packed
from state.decisions import LeaderAndIsr, StopReplica, encode
from state.part import RANKS, Part, columns_part, part_of

# Of one topic. These decisions are never divided on their way to the sink.
RUN_DECISIONS_MAX = 1_024
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
        if isinstance(one, AlikeDecisions):
            runs[one.saying.seq, one.rank].add_alike(one)
        elif isinstance(one, LeaderAndIsr | StopReplica):
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
        # By form and replicas: the place of the text.
        self._places: defaultdict[Saying, dict[tuple[int, Ids], int]] = defaultdict(dict)
        self._rows: defaultdict[_About, list[_Row]] = defaultdict(list)

    def add(self, decision: LeaderAndIsr | StopReplica) -> None:
        """Add a decision that has a text of its own. Its columns have what the text says, because readers use them."""
        place = self._add_text(with_blank_index(encode(decision)) + _NO_BLANKS, told_of(decision))
        last_value = decision.partition_epoch if isinstance(decision, LeaderAndIsr) else 0
        row = (decision.partition, place, decision.leader_epoch, last_value)
        self._rows[decision.topic, decision.topic_id].append(row)

    def add_alike(self, alike: AlikeDecisions) -> None:
        places, rows = self._places[alike.saying], self._rows[alike.topic, alike.topic_id]
        for form, replicas, partition, leader_epoch, last_value in alike.rows:
            key = (id(form), replicas)
            place = places.get(key)
            if place is None:
                place = places[key] = self._add_text(form.on(alike.saying, replicas), form.told)
            rows.append((partition, place, leader_epoch, last_value))

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
