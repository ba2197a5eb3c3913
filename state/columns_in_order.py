"""Columns in canonical order: whole topics are moved until those of several shards follow one another.

The problem: in a storm, each event changes a few partitions in each of thousands of topics, and the topics of different
shards alternate in the canonical order. An object for each event and topic would cost more than the decisions.

The insight: the decisions about one topic are neighbours in the columns of its shard, and remain neighbours. So the
topics' names are sorted, and each column is made again in one go, from the places of the rows.

    shard 0   a: 3 rows   c: 2 rows  ─┐
                                      ├─►  a: 3 rows   b: 4 rows   c: 2 rows   d: 1 row
    shard 1   b: 4 rows   d: 1 row   ─┘

Decisions that are not in columns stand between the topics where they belong, and divide the columns there.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate, chain, count, groupby, repeat, zip_longest
from operator import itemgetter

from isrflow.decision_columns import NO_REPLICA, ROWS_MAX, DecisionColumns, packed
from state.chunks import chunks
from state.part import Part, columns_part

_nth = itemgetter(-1)


def in_order(parts: Sequence[Part]) -> Iterator[Part]:
    """Yield the parts of one event and kind in order. Columns that are neighbours become one part.

    In each part the decisions are in order, and no other part has decisions between those about one of its topics.
    """
    joined = _Joined([part.columns for part in parts if part.columns is not None])
    others = [part for part in parts if part.columns is None]
    place = (parts[0].seq, parts[0].rank)
    # Topic, partition, broker, and the topic's place in the columns, or the part's place from the end of ``others``.
    keys = [(part.topic, part.partition, part.broker, nth) for nth, part in enumerate(others, -len(others))]
    keys += zip(joined.topics, joined.first_partitions(), repeat(-1), count(), strict=False)
    keys.sort()
    for is_topic, some in groupby(map(_nth, keys), key=(0).__le__):
        if is_topic:
            sized = ((nth, joined.counts[nth]) for nth in some)
            yield from (columns_part(place, joined.some(topics)) for topics in chunks(sized, ROWS_MAX))
        else:
            yield from [others[nth] for nth in some]


class _Joined:
    """The columns of several parts, one after another. Equal texts have the same place."""

    def __init__(self, held: Sequence[DecisionColumns]) -> None:
        place_of = dict(zip(dict.fromkeys(text for one in held for text in one.texts), count(), strict=False))
        self._texts = list(place_of)
        self.topics = [topic for one in held for topic in one.topics()]
        self._names = [both for one in held for both in zip(one.names[::2], one.names[1::2], strict=True)]
        self.counts = [count for one in held for count in one.counts]
        self._starts = list(accumulate(self.counts, initial=0))
        each = []
        for one in held:
            partitions, places, *others = one.columns()
            places_here = [place_of[text] for text in one.texts]
            each.append((partitions, [places_here[place] for place in places], *others))
        self._columns = [list(chain.from_iterable(same)) for same in zip(*each, strict=True)]
        self._columns += _replica_columns(held)

    def first_partitions(self) -> list[int]:
        """Return the partition of the first decision about each topic."""
        partitions = self._columns[0]
        return [partitions[start] for start in self._starts[:-1]]

    def some(self, topics: Sequence[int]) -> DecisionColumns:
        """Return the columns of the topics at some places, in this order."""
        starts = self._starts
        rows = chain.from_iterable(range(starts[nth], starts[nth + 1]) for nth in topics)
        # With the last one there are two at least, so it gives a tuple.
        taken = itemgetter(*rows, -1)
        partitions, places, epochs, values, *replicas = [taken(column)[:-1] for column in self._columns]
        used = {place: nth for nth, place in enumerate(dict.fromkeys(places))}
        return DecisionColumns(
            [self._texts[place] for place in used],
            [name for nth in topics for name in self._names[nth]],
            [self.counts[nth] for nth in topics],
            packed(partitions, [used[place] for place in places], epochs, values, *replicas),
            len(replicas),
        )


def _replica_columns(held: Sequence[DecisionColumns]) -> Iterator[list[int]]:
    """Yield the columns of replicas. Where a part has fewer, they have ``NO_REPLICA``."""
    for same in zip_longest(*[one.replica_columns() for one in held]):
        filled = zip(held, same, strict=True)
        yield list(chain.from_iterable(column or repeat(NO_REPLICA, one.decision_count) for one, column in filled))
