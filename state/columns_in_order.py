"""Columns in canonical order: whole topics are moved until those of several shards follow one another.

The problem: in a storm, each event changes a few partitions in each of thousands of topics, and the topics of different
shards alternate in the canonical order. An object for each event and topic would cost more than the decisions.

The insight: the decisions about one topic are neighbours in the columns of its shard, and remain neighbours. So the
topics' names are sorted, and then each topic's rows are four slices of bytes.

    shard 0   a: 3 rows   c: 2 rows  ─┐
                                      ├─►  a: 3 rows   b: 4 rows   c: 2 rows   d: 1 row
    shard 1   b: 4 rows   d: 1 row   ─┘

Decisions that are not in columns stand between the topics where they belong, and divide the columns there.
"""

import struct
from collections.abc import Iterator, Sequence
from itertools import count, groupby, repeat
from typing import NamedTuple

from state.chunks import chunks
from state.decision_columns import ROWS_MAX, Columns, CountedBy
from state.part import Part, columns_part

# Topic, partition and broker; the part's place among those with columns, or among the others; the topic's in those.
_Key = tuple[str, int, int, int, int]
# In a key of a part without columns.
_NO_COLUMNS = -1


def in_order(parts: Sequence[Part]) -> Iterator[Part]:
    """Yield the parts of one event and kind in order. Columns that are neighbours become one part.

    In each part the decisions are in order, and no other part has decisions between those about one of its topics.
    """
    texts = _Texts()
    opened = [_Opened.of(part.columns, texts) for part in parts if part.columns is not None]
    others = [part for part in parts if part.columns is None]
    keys: list[_Key] = [(part.topic, part.partition, part.broker, nth, _NO_COLUMNS) for nth, part in enumerate(others)]
    for nth, held in enumerate(opened):
        keys += zip(held.columns.topics, held.first_partitions(), repeat(-1), repeat(nth), count(), strict=False)
    keys.sort()
    place = (parts[0].seq, parts[0].rank)
    for has_columns, some in groupby(keys, key=lambda key: key[-1] != _NO_COLUMNS):
        if has_columns:
            sized = ((key, opened[key[3]].columns.counts[key[4]]) for key in some)
            for topics in chunks(sized, ROWS_MAX):
                yield columns_part(place, _joined(topics, opened, texts))
        else:
            yield from [others[nth] for _, _, _, nth, _ in some]


class _Texts:
    """The texts of all parts, and what each is counted by."""

    def __init__(self) -> None:
        self.texts: list[bytes] = []
        self.told: list[CountedBy] = []
        self._places: dict[bytes, int] = {}

    def place_of(self, text: bytes, told: CountedBy) -> int:
        """Return the place of a text. Equal texts have the same place."""
        place = self._places.get(text)
        if place is None:
            place = self._places[text] = len(self.texts)
            self.texts.append(text)
            self.told.append(told)
        return place


class _Opened(NamedTuple):
    """The columns of one part."""

    columns: Columns
    # The column of texts, by their places in the texts of all parts.
    places: bytes
    starts: list[int]

    @classmethod
    def of(cls, columns: Columns, texts: _Texts) -> "_Opened":
        place_of = [texts.place_of(text, told) for text, told in zip(columns.texts, columns.told, strict=True)]
        places = [place_of[place] for place in columns.places()]
        return cls(columns, struct.pack(f"<{len(places)}i", *places), columns.starts())

    def first_partitions(self) -> list[int]:
        """Return the partition of the first decision about each topic."""
        partitions = self.columns.partitions()
        return [partitions[start] for start in self.starts[:-1]]


def _joined(keys: Sequence[_Key], opened: Sequence[_Opened], texts: _Texts) -> Columns:
    """Return the columns of some topics, in this order."""
    topics: list[str] = []
    names: list[bytes] = []
    counts: list[int] = []
    partitions: list[bytes] = []
    places: list[bytes] = []
    leader_epochs: list[bytes] = []
    last_values: list[bytes] = []
    for topic, _, _, part, nth in keys:
        (_, _, _, names_in_part, counts_in_part, numbers), places_in_part, starts = opened[part]
        start, end, rows = starts[nth], starts[nth + 1], starts[-1]
        topics.append(topic)
        names += names_in_part[2 * nth : 2 * nth + 2]
        counts.append(counts_in_part[nth])
        partitions.append(numbers[4 * start : 4 * end])
        places.append(places_in_part[4 * start : 4 * end])
        leader_epochs.append(numbers[4 * (2 * rows + start) : 4 * (2 * rows + end)])
        last_values.append(numbers[4 * 3 * rows + 8 * start : 4 * 3 * rows + 8 * end])
    numbers = b"".join((*partitions, *places, *leader_epochs, *last_values))
    return Columns(texts.texts, texts.told, topics, names, counts, numbers)
