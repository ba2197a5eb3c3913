"""The decision log: merge what the shards of a batch made, number it, and write it once."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from bus.interface import Bus, Decided, Page
from sinks.outcome_rows import outcomes_of
from state.canonical import number
from state.shard_outcome import CLUSTER_PAGE


class Written(NamedTuple):
    """Tell what a batch came to: its last event, its decisions, and each shard's cluster part as bytes."""

    through: int
    decisions: list[Decided]
    clusters: list[bytes]


class DecisionLog:
    """Write batches of decisions on behalf of one controller epoch.

    ``check`` gets a batch's last event, and up to when what admins asked in it may be decided; it raises where it is
    too late for that. It is called last before the commit.
    """

    def __init__(
        self, bus: Bus, controller_epoch: int, check: Callable[[int, int], None] = lambda through, expires_ms: None
    ) -> None:
        self._bus = bus
        self._controller_epoch = controller_epoch
        self._check = check

    def write(self, outcomes: Iterable[bytes]) -> Written | None:
        """Commit a batch's decisions and state pages together; None when there was no event in it.

        A batch that comes again after a kill changes nothing. Raises ``FencedError`` when another
        job has taken over, ``DivergedError`` when such a batch says something else by now.
        """
        shards = outcomes_of(outcomes)
        if not shards:
            return None
        through = max(shard.seq for shard in shards)
        parts = (part for shard in shards for part in shard.parts)
        decisions = [Decided(seq, index, body) for seq, index, body in number(parts)]
        pages = [Page(shard.shard, page, body) for shard in shards for page, body in shard.pages]
        expires_ms = min((shard.expires_ms for shard in shards if shard.expires_ms is not None), default=None)
        if expires_ms is not None:
            self._check(through, expires_ms)
        self._bus.commit(self._controller_epoch, through, decisions, pages)
        return Written(through, decisions, [page.body for page in pages if page.page == CLUSTER_PAGE])
