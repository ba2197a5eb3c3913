"""What becomes a record of the topic of decisions: one decision, or a block of many on one event."""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from bus.decided_runs import DecidedRuns
from bus.interface import Decided
from isrflow import decision_blocks
from state.numbered_run import NumberedRun

# A commit has blocks if so many of its decisions could be in one. So a program that follows a small cluster with any
# Kafka client hardly ever meets a block.
BLOCKS_COMMIT_MIN = 1_000


@contextlib.contextmanager
def rows_in_making(runs: Sequence[NumberedRun]) -> Iterator[Callable[[], Sequence[Decided]]]:
    """Begin to turn a commit's runs into rows, in order, and yield a function that returns the rows."""
    if _fitting_blocks(runs) >= BLOCKS_COMMIT_MIN:
        with decision_blocks.rows_in_making(runs) as rows:
            yield rows
    else:
        yield lambda: DecidedRuns(runs)


def _fitting_blocks(runs: Sequence[NumberedRun]) -> int:
    """Count the decisions on events that led to enough of them for a block."""
    on_event = Counter[int]()
    for run in runs:
        on_event[run.seq] += run.decisions
    return sum(count for count in on_event.values() if count >= decision_blocks.BLOCK_DECISIONS_MIN)
