"""The pages of the state in one summary, which follows their changes.

The problem: a cluster may have more than 100,000 partitions, and a batch may change any of them. The insight: summaries
can be added up and taken off again, and an unchanged partition is stored as the same bytes. So only partitions that
changed are read, as they were and as they are.
"""

from collections.abc import Iterable, Mapping, Sequence
from heapq import nsmallest
from itertools import zip_longest
from operator import attrgetter
from typing import Any

from sinks.web.partitions import NO_FACTS, Order, Row, Stretch, Summary, TopicFacts, facts_of, summarise
from state.partition import Partition
from state.policy import Policy
from state.risk import NO_LOSS, Loss
from state.stored.codec import decode_slices, partitions_in, unpacking
from state.stored.packed import partitions_of, texts_of
from state.stored.slices import Slice

Place = tuple[int, int]
_Stored = dict[Stretch, Slice]
_COUNTS, _LOSSES = ("leaders", "preferred", "replicas", "in_sync", "problems"), ("lost", "lost_racks")
# All that the summary of a partition depends on, and its number.
shape = attrgetter(
    *("partition", "replicas", "replica_states", "isr", "leader", "leader_epoch", "leader_recovery_state"),
    *("adding_replicas", "removing_replicas", "lost_logs", "elr"),
)


class Sum:
    """What summaries add up to."""

    def __init__(self) -> None:
        self._counts: dict[str, dict[Any, int]] = {name: {} for name in _COUNTS}
        self._losses: dict[str, dict[Any, Loss]] = {name: {} for name in _LOSSES}
        # Each after its order, which is asked for far more often than it changes.
        self._rows: dict[tuple[str, int], tuple[Order, Row]] = {}

    def add(self, one: Summary, times: int = 1) -> None:
        """Add a summary. With -1 ``times`` take it off again."""
        for name, counts in self._counts.items():
            for key, number in getattr(one, name).items():
                counts[key] = counts.get(key, 0) + times * number
        for name, losses in self._losses.items():
            for key, loss in getattr(one, name).items():
                losses[key] = losses.get(key, NO_LOSS).plus(loss, times)
        for row in one.rows:
            if times > 0:
                self._rows[row.topic, row.partition] = row.order, row
            else:
                del self._rows[row.topic, row.partition]

    def summary(self, rows_max: int) -> Summary:
        """Return the sum, with the ``rows_max`` worst partitions."""
        totals: dict[str, dict[Any, Any]] = {**self._counts, **self._losses}
        counted: dict[str, Any] = {
            name: {key: value for key, value in total.items() if value not in (0, NO_LOSS)}
            for name, total in totals.items()
        }
        rows = tuple([row for _, row in nsmallest(rows_max, self._rows.values())])
        return Summary(**counted, at_risk=len(self._rows), rows=rows)


class CountedPages:
    """The pages of a state while its policy and the racks of its brokers stay the same."""

    def __init__(self, policy: Policy, racks: Mapping[int, str]) -> None:
        self.policy = policy
        self.racks = racks
        self.facts: dict[str, TopicFacts] = {}
        self.sum = Sum()
        # Each with the facts by which it was counted, and the number of its partitions. Its bytes are compressed, so
        # they take less memory than what is read of them.
        self._pages: dict[Place, tuple[bytes, dict[str, TopicFacts], int]] = {}

    @property
    def partitions(self) -> int:
        return sum([count for _, _, count in self._pages.values()])

    def learn(self, bodies: Iterable[bytes]) -> None:
        """Learn the facts of topics from the pages of a whole state, before any of them is put.

        They are in a topic's first slice, and its other slices cannot be counted without them.
        """
        for body in bodies:
            self.facts.update(_facts_in(decode_slices(body)))

    def put(self, pages: Iterable[tuple[Place, bytes]]) -> bool:
        """Count changed pages in place of what they were. Raises ``CodecError``.

        Return False if a fact changed that the counts of other pages depend on. All must be counted again then, and
        also after an error.
        """
        gone: dict[Stretch, Sequence[Partition]] = {}
        came: dict[Stretch, Sequence[Partition]] = {}
        for place, body in pages:
            slices = decode_slices(body)
            facts = _facts_in(slices)
            is_cut = {one.topic for one in slices if one.first_partition == 0 and not one.is_whole}
            if any(self.facts.get(topic, NO_FACTS) != facts[topic] for topic in is_cut):
                return False
            before = self._taken_off(place)
            self.facts.update(facts)
            about = {one.topic: self.facts.get(one.topic, NO_FACTS) for one in slices}
            after = _stored_in(slices, about)
            with unpacking():
                for stretch in before | after:
                    gone[stretch], came[stretch] = _changed(before.get(stretch), after.get(stretch))
            self._pages[place] = body, about, sum([one.partitions.count for one in slices])
        self.sum.add(summarise(gone, self.policy, self.racks), -1)
        self.sum.add(summarise(came, self.policy, self.racks))
        return True

    def _taken_off(self, place: Place) -> _Stored:
        """Return what a page had, and forget the facts of its topics."""
        if place not in self._pages:
            return {}
        body, about, _ = self._pages[place]
        slices = decode_slices(body)
        for topic in _facts_in(slices):
            self.facts.pop(topic, None)
        return _stored_in(slices, about)


def _facts_in(slices: Iterable[Slice]) -> dict[str, TopicFacts]:
    """Return the facts of the topics whose first slice is among ``slices``."""
    return {one.topic: facts_of(one) for one in slices if one.first_partition == 0}


def _stored_in(slices: Iterable[Slice], facts: Mapping[str, TopicFacts]) -> _Stored:
    return {(one.topic, facts[one.topic], one.first_partition): one for one in slices}


def _changed(was: Slice | None, now: Slice | None) -> tuple[Sequence[Partition], Sequence[Partition]]:
    """Return the partitions of a slice that count otherwise now, as they were and as they are."""
    if was is None or now is None:
        return partitions_in(was) if was else (), partitions_in(now) if now else ()
    if was.partitions == now.partitions:
        return [], []
    each = zip_longest(texts_of(was.partitions), texts_of(now.partitions), fillvalue=b"")
    texts = [pair for pair in each if pair[0] != pair[1]]
    read = (partitions_of([text for text in side if text]) for side in zip(*texts, strict=True))
    # Most differ only in what their replicas reported.
    pairs = [(one, other) for one, other in zip_longest(*read) if not one or not other or shape(one) != shape(other)]
    return [one for one, _ in pairs if one], [other for _, other in pairs if other]
