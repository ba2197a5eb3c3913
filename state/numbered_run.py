"""Numbered decisions that belong together, as lines of text or as columns."""

from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import NamedTuple

from state.decision_columns import Columns, ReasonCount

# Every text of a decision begins so.
_KIND = b'{"kind":"'
_KIND_END = 40


class NumberedRun(NamedTuple):
    """Decisions on one event at consecutive indexes. Nearly all are of one kind."""

    seq: int
    # Of the first one.
    idx: int
    # How many decisions these are.
    decisions: int
    # A line for each decision; empty if there are columns. A single decision may be any text.
    lines: bytes
    # Of a run of several decisions of one kind. Empty if only the texts tell.
    reasons: tuple[ReasonCount, ...] = ()
    columns: Columns | None = None
    # Of the first decision.
    kind: bytes = b""

    def each(self) -> Iterator[bytes]:
        """Yield the text of each decision. Those in columns are made one by one."""
        if self.columns:
            return self.columns.lines(self.idx)
        return iter([self.lines] if self.decisions == 1 else self.lines.split(b"\n"))

    def bodies(self) -> list[bytes]:
        return list(self.each())

    @property
    def text_bytes(self) -> int:
        """The length of all texts together, which is an estimate for columns."""
        columns = self.columns
        if columns is None:
            return len(self.lines)
        return self.decisions * (len(columns.texts[0]) + len(columns.names[0]) + len(columns.names[1]))


def kind_of(text: bytes) -> bytes:
    """Return the kind of a decision from its text. For any other text the result means nothing."""
    return text[len(_KIND) : _KIND_END].partition(b'"')[0]


def flat(runs: Iterable[NumberedRun]) -> list[tuple[int, int, bytes]]:
    """Return each decision of the runs: (seq, index, text)."""
    decisions: list[tuple[int, int, bytes]] = []
    for run in runs:
        if run.decisions == 1 and run.columns is None:
            decisions.append((run.seq, run.idx, run.lines))
        else:
            indexes = range(run.idx, run.idx + run.decisions)
            decisions += zip(repeat(run.seq, run.decisions), indexes, run.each(), strict=True)
    return decisions
