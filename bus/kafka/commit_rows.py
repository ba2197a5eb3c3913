"""What becomes a record of the topic of decisions: one decision, or a block of many on one event."""

import contextlib
from collections.abc import Callable, Iterator, Sequence

from bus.decided_runs import DecidedRuns
from bus.interface import Decided
from isrflow import decision_blocks
from state.numbered_run import NumberedRun

# A commit of fewer decisions has no blocks. So a program that follows a small cluster with any Kafka client never meets
# one.
BLOCKS_COMMIT_MIN = 1_000


@contextlib.contextmanager
def rows_in_making(runs: Sequence[NumberedRun], *, blocks: bool) -> Iterator[Callable[[], Sequence[Decided]]]:
    """Begin to turn a commit's runs into rows, in order, and yield a function that returns the rows.

    Without ``blocks`` each row is a decision.
    """
    if blocks and sum(run.decisions for run in runs) >= BLOCKS_COMMIT_MIN:
        with decision_blocks.rows_in_making(runs) as rows:
            yield rows
    else:
        yield lambda: DecidedRuns(runs)
