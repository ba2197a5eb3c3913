"""Columns: decisions of one kind on one event, as numbers, on their way from the rules to every reader.

The problem: a lost broker leads to hundreds of thousands of decisions, whose texts differ in a few numbers. To write
these texts, to carry them to the bus and to compress them costs more than to decide.

The insight: such decisions share a text with blanks. What is left of a decision is a row of numbers: its partition, the
place of its text, its leader epoch, its last value (a partition epoch or a high watermark) and its replicas. Its index
follows from its place. Texts are made for those who ask. One set of columns holds many topics, because in a storm
each event changes a few partitions of each.

    texts   0  {"kind":"leader_and_isr", … "index":%d, … "topic":%b,"topic_id":%b,"partition":%d, … "leader":⟨1⟩, …
            1  {"kind":"leader_and_isr", … "index":%d, … "topic":%b,"topic_id":%b,"partition":%d, … "leader":⟨0⟩, …

    names              a         b
    counts             2         2
    partition          0    3    8    11         line 2 is text 0 with the first index + 2, b, the id of b, 8, 5, 9,
    text               0    1    0    1          and 7 as the leader
    leader epoch       4    4    5    4
    last value         8    6    9    6
    replicas           3,9  9,7  3,7  9,3

A text has a blank for the index, topic, topic id, partition, leader epoch and last value, in this order. Where it has
no use for a value, its blank shows nothing. It may have any number of blanks for the replica at some place of the
assignment. So any text can be among them.
"""

import re
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate, chain, count, repeat
from operator import itemgetter
from typing import Any

import msgspec

# A blank that shows nothing, whatever fills it.
SILENT = b"%.0a"
BLANKS = 6
# The most rows of one set of columns: as many as a block of the decision log holds. A row of Spark's has a bound too.
ROWS_MAX = 4_096
# Of a row without replicas.
ROW_BYTES = 20
REPLICA_BYTES = 4
# Fills the columns of replicas that a partition does not have.
NO_REPLICA = -1
# Of each column before the replicas: a number's form and size, and the bytes of a row before it.
_COLUMNS = (("i", 4, 0), ("I", 4, 4), ("i", 4, 8), ("q", 8, 12))
_name = msgspec.json.Decoder(str).decode
# No JSON text has this byte.
_MARK = b"\1"
_BLANK = re.compile(rb"%%|%\.0a|%d|%b|\x01([0-9]+)\x01")


def replica_blank(place: int) -> bytes:
    """Return the blank for the replica at a place of the assignment."""
    return b"\1%d\1" % place


def has_replica_blanks(text: bytes) -> bool:
    """Return whether a text has blanks for replicas."""
    return _MARK in text


@lru_cache
def _layout(rows: int, replicas: int) -> struct.Struct:
    return struct.Struct(f"<{3 * rows}i{rows}q{replicas * rows}i")


_IN_ORDER = itemgetter(*range(BLANKS))


def _format_of(text: bytes) -> tuple[bytes, Any]:
    """Return a text as a format, and what takes its values, in order, from those of a row."""
    # At level 1 there may be as many texts as decisions, so those are not remembered.
    return _format_with_replicas(text) if has_replica_blanks(text) else (text, _IN_ORDER)


@lru_cache(ROWS_MAX)
def _format_with_replicas(text: bytes) -> tuple[bytes, Any]:
    places: list[int] = []
    of_row = count()

    def blank(match: re.Match[bytes]) -> bytes:
        if match[0] == b"%%":
            return match[0]
        places.append(next(of_row) if match[1] is None else BLANKS + int(match[1]))
        return match[0] if match[1] is None else b"%d"

    made = _BLANK.sub(blank, text)
    if next(of_row) != BLANKS:
        raise ValueError(f"a text has other blanks than the {BLANKS} of a row")
    return made, itemgetter(*places)


def line(text: bytes, values: tuple[Any, ...]) -> bytes:
    """Fill in all blanks: with index, topic, topic id, partition, leader epoch and last value, then the replicas.

    The topic and its id are as they are in a text.
    """
    made, taken = _format_of(text)
    return bytes(made % taken(values))


def with_replicas(text: bytes, replicas: Sequence[int]) -> bytes:
    """Fill in the blanks for replicas alone."""
    made, places = _format_of_replicas(text)
    return made % tuple([replicas[place] for place in places])


@lru_cache(ROWS_MAX)
def _format_of_replicas(text: bytes) -> tuple[bytes, list[int]]:
    """Return a text as a format whose only blanks are those for replicas, and their places in the assignment."""
    parts = text.replace(b"%", b"%%").split(_MARK)
    return b"%d".join(parts[::2]), list(map(int, parts[1::2]))


class DecisionColumns(msgspec.Struct, frozen=True, array_like=True, dict=True):
    """Decisions in columns, with what fills the blanks of their texts."""

    texts: Sequence[bytes]
    # Of each run of decisions about one topic: the topic, then its id, as they are in a text.
    names: Sequence[bytes]
    # How many decisions each run has.
    counts: Sequence[int]
    # As ``packed`` returns them.
    numbers: bytes
    # How many columns are of replicas.
    replicas: int = 0

    @property
    def decision_count(self) -> int:
        """The number of decisions."""
        return len(self.numbers) // (ROW_BYTES + REPLICA_BYTES * self.replicas)

    @property
    def byte_count(self) -> int:
        """The bytes of texts, names and numbers."""
        return len(self.numbers) + sum(map(len, self.texts)) + sum(map(len, self.names))

    @cached_property
    def starts(self) -> list[int]:
        """How many decisions come before each run, and at last of all."""
        return list(accumulate(self.counts, initial=0))

    @property
    def first_topic(self) -> str:
        """The topic of the first decision."""
        return _name(self.names[0])

    @property
    def first_partition(self) -> int:
        """The partition of the first decision."""
        return self.column(0, 0, 1)[0]

    def topics(self) -> list[str]:
        """Return the topic of each run."""
        return list(map(_name, self.names[::2]))

    def columns(self, start: int = 0, stop: int | None = None) -> list[tuple[int, ...]]:
        """Return the partitions, the places of the texts, the leader epochs and the last values of some decisions.

        Raises ``ValueError``.
        """
        return [self.column(nth, start, stop) for nth in range(len(_COLUMNS))]

    def column(self, nth: int, start: int = 0, stop: int | None = None) -> tuple[int, ...]:
        """Return one of these four columns. Raises ``ValueError``."""
        form, size, before = _COLUMNS[nth]
        return self._numbers(form, size, before, start, stop)

    def replica_columns(self, start: int = 0, stop: int | None = None) -> list[tuple[int, ...]]:
        """Return a column for each place of an assignment, or none if no text has blanks for replicas.

        Where a partition has fewer replicas, it has ``NO_REPLICA``. Raises ``ValueError``.
        """
        befores = range(ROW_BYTES, ROW_BYTES + self.replicas * REPLICA_BYTES, REPLICA_BYTES)
        return [self._numbers("i", REPLICA_BYTES, before, start, stop) for before in befores]

    def _numbers(self, form: str, size: int, before: int, start: int, stop: int | None) -> tuple[int, ...]:
        rows = self.decision_count
        stop = rows if stop is None else stop
        try:
            return struct.unpack_from(f"<{stop - start}{form}", self.numbers, before * rows + size * start)
        except struct.error as error:
            raise ValueError(f"a column is damaged: {error}") from error

    def _names(self, start: int, stop: int) -> list[list[bytes]]:
        """Return the topics, and their ids, of the decisions from place ``start`` to ``stop``."""
        starts = self.starts
        first, end = bisect_right(starts, start) - 1, bisect_left(starts, stop)
        counts = [min(starts[run + 1], stop) - max(starts[run], start) for run in range(first, end)]
        names = self.names[2 * first : 2 * end]
        return [list(chain.from_iterable(map(repeat, names[nth::2], counts))) for nth in (0, 1)]

    def lines(self, idx: int, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """Yield the texts of the decisions from place ``start`` to ``stop``; the one at place 0 has the index ``idx``.

        Raises ``ValueError`` if they cannot be read.
        """
        total = self.decision_count
        stop = total if stop is None else min(stop, total)
        if stop <= start:
            return
        partitions, places, *last = self.columns(start, stop)
        columns = (*self._names(start, stop), partitions, *last, *self.replica_columns(start, stop))
        rows = zip(range(idx + start, idx + stop), *columns, strict=True)
        try:
            formats = {place: _format_of(self.texts[place]) for place in set(places)}
            for place, values in zip(places, rows, strict=True):
                made, taken = formats[place]
                yield made % taken(values)
        except (IndexError, TypeError, ValueError) as error:
            raise ValueError(f"a column is damaged: {error}") from error


def packed(
    partitions: Sequence[int],
    texts: Sequence[int],
    leader_epochs: Sequence[int],
    last_values: Sequence[int],
    *replicas: Sequence[int],
) -> bytes:
    """Return the bytes of columns, one after another, little-endian. All have 32 bits, the last values 64.

    ``replicas`` has a column for each place of an assignment. Raises ``struct.error`` if a number does not fit.
    """
    layout = _layout(len(partitions), len(replicas))
    return layout.pack(*partitions, *texts, *leader_epochs, *last_values, *chain.from_iterable(replicas))
