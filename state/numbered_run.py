"""Numbered decisions, as lines of text that belong together."""

from collections.abc import Iterable
from typing import NamedTuple


class ReasonCount(NamedTuple):
    """How many decisions of a run have the same reason and are alike in what elections say."""

    reason: str
    unclean: bool
    passes_over: bool
    decisions: int


class NumberedRun(NamedTuple):
    """Decisions on one event at consecutive indexes. Nearly all are about one topic and of one kind."""

    seq: int
    # Of the first one.
    idx: int
    # How many decisions these are.
    decisions: int
    # A line for each decision. A single decision may be any text.
    text: bytes
    # Of a run of several decisions of one kind. Empty if each text has to be read for that.
    reasons: tuple[ReasonCount, ...] = ()

    def bodies(self) -> list[bytes]:
        """Return the text of each decision."""
        return [self.text] if self.decisions == 1 else self.text.split(b"\n")


def flat(runs: Iterable[NumberedRun]) -> list[tuple[int, int, bytes]]:
    """Return each decision of the runs: (seq, index, text)."""
    decisions: list[tuple[int, int, bytes]] = []
    for seq, idx, count, text, _ in runs:
        if count == 1:
            decisions.append((seq, idx, text))
        else:
            decisions += zip([seq] * count, range(idx, idx + count), text.split(b"\n"), strict=True)
    return decisions
