"""A batch's decisions on their way to the bus, in runs.

The problem: a lost broker leads to a hundred thousand decisions. Making an object of each costs more than writing them
down, and readers of a batch need only a few: the first elections, the counts by reason.

The insight: the rules' runs (``state/runs.py``) stay runs up to the bus. Code that needs single decisions goes through
the sequence, which makes them then. Code that can do without asks for ``runs_in``.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, islice
from typing import overload

from isrflow.contract import Decided
from state.numbered_run import NumberedRun, flat, kind_of


class DecidedRuns(Sequence[Decided]):
    """The decisions of some runs, in order."""

    def __init__(self, runs: Sequence[NumberedRun]) -> None:
        self.runs = runs
        # How many decisions come before each run, and then the number of all.
        self._before = list(accumulate([run.decisions for run in runs], initial=0))

    def __len__(self) -> int:
        return self._before[-1]

    def __iter__(self) -> Iterator[Decided]:
        for run in self.runs:
            yield from map(Decided._make, flat([run]))

    @overload
    def __getitem__(self, index: int) -> Decided: ...
    @overload
    def __getitem__(self, index: slice) -> list[Decided]: ...
    def __getitem__(self, index: int | slice) -> Decided | list[Decided]:
        if isinstance(index, slice):
            return list(self)[index]
        place = index + len(self) if index < 0 else index
        if not 0 <= place < len(self):
            raise IndexError(index)
        nth = bisect_right(self._before, place) - 1
        run, nth_in_run = self.runs[nth], place - self._before[nth]
        return Decided(run.seq, run.idx + nth_in_run, next(islice(run.each(), nth_in_run, None)))


def runs_in(decisions: Sequence[Decided]) -> Sequence[NumberedRun]:
    """Return the runs of decisions. Each single decision is a run of its own."""
    if isinstance(decisions, DecidedRuns):
        return decisions.runs
    return [NumberedRun(seq, idx, body, kind=kind_of(body)) for seq, idx, body in decisions]
