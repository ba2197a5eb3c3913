"""Runs: the decisions of one kind on one event, encoded together.

The problem: a lost broker leads to tens of thousands of decisions, and a storm to a few in each of thousands of topics.
Handing each of them to the sink, sorting it and putting its index into its text costs as much as deciding it.

The insight: decisions of one kind differ in a few numbers. They travel together as columns of numbers
(``isrflow.decision_columns``), topic after topic, and the sink moves whole topics when it puts the columns of several
shards in order (``state.columns_in_order``). A topic is in one shard, so in the canonical order nothing can come
between its decisions.
"""

import struct
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

from isrflow.decision_columns import (
    BLANKS,
    NO_REPLICA,
    ROWS_MAX,
    SILENT,
    DecisionColumns,
    line,
    packed,
    with_replicas,
)
from state.alike import AlikeDecisions, Ids, Named, Said, Saying, named_in_text, with_blank_index
from state.chunks import chunks
from state.decisions import LeaderAndIsr, StopReplica, encode
from state.level import FIRST_LEVEL
from state.part import RANKS, Part, columns_part, part_of

# Of one topic. These decisions are never divided on their way to the sink.
RUN_DECISIONS_MAX = 1_024
# The first level at which columns have replicas. Below it, a text has their ids.
_REPLICA_COLUMNS_LEVEL = 2
# A text about more replicas has their ids at any level, because columns are as wide as their longest row.
REPLICAS_MAX = 16
# What follows a text that has its own values. Its index alone is blank.
_NO_BLANKS = SILENT * (BLANKS - 1)

# Topic, partition, place of the text, leader epoch, partition epoch or high watermark, and what fills blanks for
# replicas.
_Row = tuple[Named, int, int, int, int, Ids]


def parts_of(said: Iterable[Said], level: int = FIRST_LEVEL) -> list[Part]:
    """Encode decisions for a bus at ``level``, as runs where they are about partitions.

    If two have one place in the canonical order, both are parts of their own, so that ``parts_clash`` finds them.
    """
    parts: list[Part] = []
    # By seq and rank.
    runs: defaultdict[tuple[int, int], _Decided] = defaultdict(_Decided)
    replicas_max = REPLICAS_MAX if level >= _REPLICA_COLUMNS_LEVEL else 0
    for one in said:
        if isinstance(one, AlikeDecisions):
            runs[one.saying.seq, one.rank].add_alike(one, replicas_max)
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
        # Each has the blanks of ``isrflow.decision_columns``.
        self._texts: list[bytes] = []
        # By form, and by the replicas of which a text has the ids: the place of the text.
        self._places: defaultdict[Saying, dict[tuple[int, Ids], int]] = defaultdict(dict)
        self._rows: list[_Row] = []

    def add(self, decision: LeaderAndIsr | StopReplica) -> None:
        """Add a decision that has a text of its own. Its columns have what the text says, because readers use them."""
        last_value = decision.partition_epoch if isinstance(decision, LeaderAndIsr) else 0
        named = named_in_text(decision.topic, decision.topic_id)
        self._rows.append((named, decision.partition, len(self._texts), decision.leader_epoch, last_value, ()))
        self._texts.append(with_blank_index(encode(decision)) + _NO_BLANKS)

    def add_alike(self, alike: AlikeDecisions, replicas_max: int) -> None:
        """Add rows. Those of more replicas than ``replicas_max`` share a text only with the same replicas."""
        places, rows, texts = self._places[alike.saying], self._rows, self._texts
        for named, partition, form, replicas, leader_epoch, last_value in alike.rows:
            in_text, in_columns = ((), replicas) if len(replicas) <= replicas_max else (replicas, ())
            key = (id(form), in_text)
            place = places.get(key)
            if place is None:
                place = places[key] = len(texts)
                text = form.on(alike.saying)
                texts.append(with_replicas(text, in_text) if in_text else text)
            rows.append((named, partition, place, leader_epoch, last_value, in_columns))

    def parts(self, place: tuple[int, int]) -> Iterable[Part]:
        """Encode the decisions, which have this place in the canonical order."""
        rows = sorted(self._rows)
        try:
            return [columns_part(place, columns) for columns in self._columns(rows)]
        except (struct.error, ValueError):
            # Numbers that are greater than Kafka's fit into no column, and two decisions in one place into no run.
            return self._one_by_one(place, rows)

    def _columns(self, rows: Sequence[_Row]) -> Iterator[DecisionColumns]:
        """Divide rows, which are in order. Raises ``struct.error`` or ``ValueError``."""
        about, partitions, places, leader_epochs, last_values, replicas = zip(*rows, strict=True)
        start = 0
        for some in chunks(_runs(about, partitions), ROWS_MAX):
            topics, counts = zip(*some, strict=True)
            these = slice(start, start + sum(counts))
            used = {place: nth for nth, place in enumerate(dict.fromkeys(places[these]))}
            places_here = [used[place] for place in places[these]]
            of_replicas = list(zip_longest(*replicas[these], fillvalue=NO_REPLICA))
            yield DecisionColumns(
                [self._texts[place] for place in used],
                [name for _, *names in topics for name in names],
                counts,
                packed(partitions[these], places_here, leader_epochs[these], last_values[these], *of_replicas),
                len(of_replicas),
            )
            start = these.stop

    def _one_by_one(self, place: tuple[int, int], rows: Iterable[_Row]) -> Iterator[Part]:
        for (topic, *names), partition, nth, leader_epoch, last_value, replicas in rows:
            values = (0, *names, partition, leader_epoch, last_value, *replicas)
            yield Part(*place, topic, partition, -1, line(self._texts[nth], values))


def _runs(about: Sequence[Named], partitions: Sequence[int]) -> Iterator[tuple[tuple[Named, int], int]]:
    """Yield each topic with the number of its rows, and that number as its size. A topic with many comes repeatedly.

    Raises ``ValueError`` if two rows are about one partition.
    """
    start = 0
    for named, left in Counter(about).items():
        if left > 1 and len({*partitions[start : start + left]}) < left:
            raise ValueError(f"two decisions about one partition of {named[0]}")
        start += left
        while left > RUN_DECISIONS_MAX:
            yield (named, RUN_DECISIONS_MAX), RUN_DECISIONS_MAX
            left -= RUN_DECISIONS_MAX
        yield (named, left), left
