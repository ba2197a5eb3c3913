"""Numbered decisions that belong together: one as a text, or several as columns."""

from collections.abc import Iterable, Iterator
from itertools import count, repeat
from typing import NamedTuple

from isrflow.decision_columns import DecisionColumns

# Every text of a decision begins so.
_KIND = b'{"kind":"'
_KIND_END = 40


class NumberedRun(NamedTuple):
    """Decisions of one kind on one event at consecutive indexes."""

    seq: int
    # Of the first one.
    idx: int
    # Of a single decision; empty if there are columns.
    text: bytes
    columns: DecisionColumns | None = None
    kind: bytes = b""

    @property
    def decisions(self) -> int:
        """How many decisions these are."""
        return 1 if self.columns is None else self.columns.decision_count

    def each(self) -> Iterator[bytes]:
        """Yield the text of each decision. From columns the texts are made one by one."""
        return iter((self.text,)) if self.columns is None else self.columns.lines(self.idx)

    @property
    def byte_count(self) -> int:
        """The bytes that the run holds."""
        return len(self.text) if self.columns is None else self.columns.byte_count


def kind_of(text: bytes) -> bytes:
    """Return the kind of a decision from its text. For any other text the result means nothing."""
    return text[len(_KIND) : _KIND_END].partition(b'"')[0]


def flat(runs: Iterable[NumberedRun]) -> list[tuple[int, int, bytes]]:
    """Return each decision of the runs: (seq, index, text)."""
    decisions: list[tuple[int, int, bytes]] = []
    for run in runs:
        decisions += zip(repeat(run.seq), count(run.idx), run.each(), strict=False)
    return decisions
