"""The decision log: merge the shards' decisions of a batch, number them, and write them once.

The problem: shards finish in any order, there may be any number of them, and a kill may come at any moment. Yet the log
must have one order, and each decision must be in it once.

    shard 0   decisions, changed pages ─┐
    shard 1   decisions, changed pages ─┼─► number ─► one transaction: decisions, pages, "decided through seq"
    shard …   decisions, changed pages ─┘

The insight: ``state.canonical`` numbers decisions by event and kind, and never by shard. So (seq, index) identifies a
decision whatever the shards, and a repeated batch gives the same numbers. The bus commits the decisions together with
the state that they led to, so it can tell that a repeated batch is already there, and changes nothing.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from bus.decided_runs import DecidedRuns
from bus.interface import Bus, Page
from conf.garbage import without_collections
from sinks.outcome_rows import outcomes_of
from state.canonical import numbered_runs
from state.shard_outcome import CLUSTER_PAGE


class WrittenBatch(NamedTuple):
    """A committed batch: its last event's seq, its decisions, and the pages that changed."""

    through: int
    decisions: DecidedRuns
    pages: list[Page]

    @property
    def clusters(self) -> list[bytes]:
        """Each shard's cluster state."""
        return [page.body for page in self.pages if page.page == CLUSTER_PAGE]


class DecisionLog:
    """The writer of one controller epoch's decisions.

    If a batch has admin events with a deadline, ``check`` is called right before the commit. It gets the seq of the
    batch's last event and the earliest deadline, and raises if that deadline has passed.
    """

    def __init__(
        self, bus: Bus, controller_epoch: int, check: Callable[[int, int], None] = lambda through, expires_ms: None
    ) -> None:
        self._bus = bus
        self._controller_epoch = controller_epoch
        self._check = check

    def write(self, outcomes: Iterable[bytes]) -> WrittenBatch | None:
        """Commit a batch's decisions and state pages together. Return None if the batch has no events.

        Repeating a batch after a kill changes nothing. Raises ``FencedError`` if another job has
        taken over, ``DivergedError`` if a repeated batch has other decisions now.
        """
        with without_collections():
            return self._write(outcomes)

    def _write(self, outcomes: Iterable[bytes]) -> WrittenBatch | None:
        shards = outcomes_of(outcomes)
        if not shards:
            return None
        through = max(shard.seq for shard in shards)
        parts = (part for shard in shards for part in shard.parts)
        decisions = DecidedRuns(numbered_runs(parts))
        pages = [Page(shard.shard, page, body) for shard in shards for page, body in shard.pages]
        expires_ms = min((shard.expires_ms for shard in shards if shard.expires_ms is not None), default=None)
        if expires_ms is not None:
            self._check(through, expires_ms)
        self._bus.commit(self._controller_epoch, through, decisions, pages)
        return WrittenBatch(through, decisions, pages)
