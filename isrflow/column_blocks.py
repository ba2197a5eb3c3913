"""Blocks of columns: what a block holds of decisions whose texts differ in a few numbers.

The rules make such decisions from patterns, which are texts with blanks, so that a decision is a row of numbers. A
block keeps the patterns and the rows. A reader fills in the blanks of the decisions that it wants, and of no others.

    how many texts, how many runs, bytes of the section that follows              3 numbers of 32 bits
    the texts; for each run, the topic and its id as they are in a text           in lines
    decisions of each run                                                         32 bits each
    of each decision: its partition, the place of its text, its leader epoch      three columns of 32 bits
    and its last value, which is a partition epoch or a high watermark            one of 64 bits

Numbers are little-endian. A text has a blank for the index, topic, topic id, partition, leader epoch and last value, in
this order. Where it has no use for a value, its blank shows nothing. So any text can be among them.
"""

import struct
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import NamedTuple, Protocol

_HEAD = struct.Struct("<III")
# These two are also in ``state.decision_columns``. A test compares them, because neither room may import the other.
ROW_BYTES = 20
# A blank that shows nothing, whatever fills it.
SILENT = b"%.0a"
_BLANKS = 6


@lru_cache
def _places_layout(rows: int) -> struct.Struct:
    return struct.Struct(f"<{rows}i")


class Columns(Protocol):
    """The decisions of some topics: texts that other columns may share, and each topic's name, id and decisions."""

    @property
    def texts(self) -> Sequence[bytes]: ...
    @property
    def names(self) -> Sequence[bytes]: ...
    @property
    def counts(self) -> Sequence[int]: ...
    @property
    def numbers(self) -> bytes: ...


class Run(Protocol):
    """Decisions at consecutive indexes, as columns or as texts."""

    @property
    def decisions(self) -> int: ...
    @property
    def columns(self) -> Columns | None: ...
    def bodies(self) -> list[bytes]:
        """Return the text of each decision."""
        ...


class _Made:
    """A block in making."""

    def __init__(self) -> None:
        self.texts: dict[bytes, int] = {}
        self.names: list[bytes] = []
        self.counts: list[int] = []
        self.partitions: list[bytes] = []
        self.places: list[int] = []
        self.leader_epochs: list[bytes] = []
        self.last_values: list[bytes] = []
        # Of each table of texts: a text's place in the block by its place in the table.
        self._places_of: dict[int, dict[int, int]] = {}
        # Those of the last run, because neighbours often share a table.
        self._table: Sequence[bytes] = ()
        self._known: dict[int, int] = {}

    def add(self, run: Run) -> None:
        if run.columns is None:
            self._add_texts(run.bodies())
        else:
            self._add_columns(run.columns, run.decisions)

    def _add_columns(self, columns: Columns, rows: int) -> None:
        texts, numbers = columns.texts, columns.numbers
        if texts is not self._table:
            self._table, self._known = texts, self._places_of.setdefault(id(texts), {})
        known = self._known
        places = _places_layout(rows).unpack_from(numbers, 4 * rows)
        try:
            self.places += [known[place] for place in places]
        except KeyError:
            for place in dict.fromkeys(places):
                known[place] = self.texts.setdefault(texts[place], len(self.texts))
            self.places += [known[place] for place in places]
        self.names += columns.names
        self.counts += columns.counts
        self.partitions.append(numbers[: 4 * rows])
        self.leader_epochs.append(numbers[8 * rows : 12 * rows])
        self.last_values.append(numbers[12 * rows :])

    def _add_texts(self, bodies: list[bytes]) -> None:
        rows = len(bodies)
        literals = [body.replace(b"%", b"%%") + SILENT * _BLANKS for body in bodies]
        self.names += (b"", b"")
        self.counts.append(rows)
        self.partitions.append(bytes(4 * rows))
        self.places += [self.texts.setdefault(text, len(self.texts)) for text in literals]
        self.leader_epochs.append(bytes(4 * rows))
        self.last_values.append(bytes(8 * rows))


def packed(runs: Iterable[Run]) -> bytes:
    """Return runs, in order, as columns. No text may have several lines."""
    made = _Made()
    for run in runs:
        made.add(run)
    section = b"\n".join([*made.texts, *made.names])
    return b"".join(
        (
            _HEAD.pack(len(made.texts), len(made.counts), len(section)),
            section,
            struct.pack(f"<{len(made.counts)}I", *made.counts),
            *made.partitions,
            struct.pack(f"<{len(made.places)}I", *made.places),
            *made.leader_epochs,
            *made.last_values,
        )
    )


class OpenedBlock(NamedTuple):
    """A block of columns that can be read."""

    texts: list[bytes]
    # Of each run: its topic, then the topic's id.
    names: list[bytes]
    # How many decisions come before each run, and at last of all.
    starts: list[int]
    body: bytes
    # Where the columns begin.
    offset: int

    @property
    def decision_count(self) -> int:
        """The number of decisions."""
        return self.starts[-1]

    def _columns(self, start: int, stop: int) -> list[tuple[int, ...]]:
        """Return the four columns of the decisions from place ``start`` to ``stop``. Raises ``ValueError``."""
        count, rows = self.decision_count, stop - start
        try:
            return [
                struct.unpack_from(f"<{rows}{kind}", self.body, self.offset + before * count + size * start)
                for kind, before, size in (("i", 0, 4), ("I", 4, 4), ("i", 8, 4), ("q", 12, 8))
            ]
        except struct.error as error:
            raise ValueError(f"a column is damaged: {error}") from error

    def bodies(self, idx: int, start: int, stop: int) -> list[bytes]:
        """Return the texts of the decisions from place ``start`` to ``stop``; the one at place 0 has the index ``idx``.

        Raises ``ValueError`` if they cannot be read.
        """
        try:
            return self._bodies(idx, start, min(stop, self.decision_count))
        except (IndexError, TypeError) as error:
            raise ValueError(f"a column is damaged: {error}") from error

    def _bodies(self, idx: int, start: int, stop: int) -> list[bytes]:
        if stop <= start:
            return []
        rows, columns = stop - start, self._columns(start, stop)
        found: list[bytes] = []
        texts = self.texts
        run = bisect_right(self.starts, start) - 1
        while len(found) < rows:
            first = len(found)
            end = min(self.starts[run + 1], stop) - start
            topic, topic_id = self.names[2 * run], self.names[2 * run + 1]
            values = zip(*(column[first:end] for column in columns), strict=True)
            found += [
                texts[text] % (index, topic, topic_id, partition, epoch, last)
                for index, (partition, text, epoch, last) in enumerate(values, idx + start + first)
            ]
            run += 1
        return found

    def runs(self) -> "list[OpenedRun]":
        """Return the runs in order. Raises ``ValueError`` if they cannot be read."""
        partitions, places, leader_epochs, last_values = self._columns(0, self.decision_count)
        if max(places) >= len(self.texts):
            raise ValueError(f"a decision has text {max(places)} of {len(self.texts)}")
        return [
            OpenedRun(
                first,
                self.names[2 * nth],
                self.names[2 * nth + 1],
                partitions[first:end],
                places[first:end],
                leader_epochs[first:end],
                last_values[first:end],
            )
            for nth, (first, end) in enumerate(pairwise(self.starts))
        ]


class OpenedRun(NamedTuple):
    """The decisions of one kind on one event about one topic, or decisions that are whole texts."""

    # The place in the block of the first one.
    first: int
    # As they are in a text. Empty if the texts are whole.
    topic: bytes
    topic_id: bytes
    partitions: tuple[int, ...]
    # The place of each decision's text in ``OpenedBlock.texts``.
    places: tuple[int, ...]
    leader_epochs: tuple[int, ...]
    last_values: tuple[int, ...]


class DecidedColumns(NamedTuple):
    """Decisions on one event at consecutive indexes, the first of which is ``idx``, as a block of columns."""

    seq: int
    idx: int
    block: OpenedBlock
    runs: list[OpenedRun]


def opened(body: bytes, count: int) -> OpenedBlock:
    """Read what ``packed`` made of ``count`` decisions. Raises ``ValueError`` if it is damaged."""
    try:
        texts, runs, section = _HEAD.unpack_from(body)
        end = _HEAD.size + section
        lines = body[_HEAD.size : end].split(b"\n")
        counts = struct.unpack_from(f"<{runs}I", body, end)
    except struct.error as error:
        raise ValueError(f"a column is damaged: {error}") from error
    starts = list(accumulate(counts, initial=0))
    offset = end + 4 * runs
    if (len(lines), starts[-1], len(body)) != (texts + 2 * runs, count, offset + ROW_BYTES * count) or 0 in counts:
        raise ValueError(f"expected {count} decisions in {len(body)} bytes")
    return OpenedBlock(lines[:texts], lines[texts:], starts, body, offset)
