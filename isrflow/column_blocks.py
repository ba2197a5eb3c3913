"""Blocks of columns: what a block holds of decisions whose texts differ in a few numbers.

The rules make such decisions from texts with blanks, so that a decision is a row of numbers. A block keeps the texts
and the rows. A reader fills in the blanks of the decisions that it wants, and of no others.

    how many texts, how many runs, bytes of the section that follows              3 numbers of 32 bits
    the texts; for each run, the topic and its id as they are in a text           in lines
    decisions of each run                                                         32 bits each
    the rows                                                                      columns (``column_layout``)

Numbers are little-endian.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import NamedTuple, Protocol

from isrflow.column_layout import BLANKS, ROW_BYTES, SILENT, ColumnTable

_HEAD = struct.Struct("<III")


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
    """A decision as a text, or several on one event as columns, at consecutive indexes from ``idx`` on."""

    @property
    def seq(self) -> int: ...
    @property
    def idx(self) -> int: ...
    @property
    def decisions(self) -> int: ...
    @property
    def text(self) -> bytes: ...
    @property
    def columns(self) -> Columns | None: ...
    @property
    def text_bytes(self) -> int: ...
    def each(self) -> Iterator[bytes]:
        """Yield the text of each decision."""
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
        # Both are the last run's, because neighbours often share a table.
        self._table: Sequence[bytes] = ()
        self._known: dict[int, int] = {}

    def add(self, run: Run) -> None:
        if run.columns is None:
            self._add_text(run.text)
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

    def _add_text(self, body: bytes) -> None:
        text = body.replace(b"%", b"%%") + SILENT * BLANKS
        self.names += (b"", b"")
        self.counts.append(1)
        self.partitions.append(bytes(4))
        self.places.append(self.texts.setdefault(text, len(self.texts)))
        self.leader_epochs.append(bytes(4))
        self.last_values.append(bytes(8))


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


class ColumnRun(NamedTuple):
    """The decisions of one kind on one event about one topic, or decisions that are whole texts."""

    # The place in the block of the first one.
    first: int
    # As they are in a text. Empty if the texts are whole.
    topic: bytes
    topic_id: bytes
    partitions: tuple[int, ...]
    # The place of each decision's text in ``ColumnTable.texts``.
    places: tuple[int, ...]
    leader_epochs: tuple[int, ...]
    last_values: tuple[int, ...]


class DecidedColumns(NamedTuple):
    """Decisions on one event at consecutive indexes, the first of which is ``idx``, as a block of columns."""

    seq: int
    idx: int
    block: ColumnTable
    runs: list[ColumnRun]


def runs_in(block: ColumnTable) -> list[ColumnRun]:
    """Return the runs of a block, in order. Raises ``ValueError`` if they cannot be read."""
    partitions, places, leader_epochs, last_values = block.columns(0, block.decision_count)
    if max(places) >= len(block.texts):
        raise ValueError(f"a decision has text {max(places)} of {len(block.texts)}")
    return [
        ColumnRun(
            first,
            block.names[2 * nth],
            block.names[2 * nth + 1],
            partitions[first:end],
            places[first:end],
            leader_epochs[first:end],
            last_values[first:end],
        )
        for nth, (first, end) in enumerate(pairwise(block.starts))
    ]


def opened(body: bytes, count: int) -> ColumnTable:
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
    return ColumnTable(lines[:texts], lines[texts:], starts, body, offset)
