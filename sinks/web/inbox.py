"""The inbox of the live page's thread: what batches changed and what they decided.

A batch only leaves references here, so it does not get slower. What waits here is limited in count and in bytes.
"""

import threading
from collections import deque
from collections.abc import Sequence

import msgspec

from bus.clock import steady_ms
from bus.decided_runs import runs_in
from bus.interface import Decided, Page
from state.cluster import Cluster
from state.shard_outcome import CLUSTER_PAGE

DECISIONS_MAX = 200_000
DECISION_BYTES_MAX = 64 * 1024 * 1024
PAGE_BYTES_MAX = 256 * 1024 * 1024


class Received(msgspec.Struct, frozen=True):
    """What the batches left since the last call of ``take``."""

    # The last event of the newest batch; 0 if there was no batch.
    through: int
    # The newest batch's clusters, one for each shard, the first with the brokers; empty if there was no batch.
    clusters: Sequence[Cluster]
    # The newest version of each changed page of the state, with the last event of its batch.
    pages: dict[tuple[int, int], tuple[int, bytes]]
    # Whether some of these pages are missing, so that the state must be read from the bus.
    is_stale: bool
    decisions: list[Sequence[Decided]]
    # How many decisions were dropped.
    dropped: int
    # When the newest batch was committed, by the steady clock; None if there was no batch.
    committed_steady_ms: int | None


class Inbox:
    """What batches have left and the live page's thread has not taken yet."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._empty()
        self._is_stale = True

    def _empty(self) -> None:
        self._through = 0
        self._clusters: Sequence[Cluster] = ()
        self._pages: dict[tuple[int, int], tuple[int, bytes]] = {}
        self._page_bytes = 0
        self._is_stale = False
        self._decisions: deque[Sequence[Decided]] = deque()
        self._decision_count = 0
        self._decision_bytes = 0
        self._dropped = 0
        self._committed_steady_ms: int | None = None

    def begin(self) -> None:
        """Start over, because this job begins to decide, perhaps on a state that another job left."""
        with self._lock:
            self._empty()
            self._is_stale = True

    def committed(
        self, through: int, clusters: Sequence[Cluster], pages: Sequence[Page], decisions: Sequence[Decided]
    ) -> None:
        """Leave what a committed batch changed and decided."""
        with self._lock:
            self._through, self._clusters = through, clusters
            self._committed_steady_ms = steady_ms()
            self._put_pages(through, pages)
            self._put_decisions(decisions)

    def _put_pages(self, through: int, pages: Sequence[Page]) -> None:
        if self._is_stale:
            return
        for page in pages:
            if page.page != CLUSTER_PAGE:
                place = (page.shard, page.page)
                former = self._pages.get(place)
                self._page_bytes += len(page.body) - (len(former[1]) if former else 0)
                self._pages[place] = (through, page.body)
        if self._page_bytes > PAGE_BYTES_MAX:
            self._pages, self._page_bytes, self._is_stale = {}, 0, True

    def _put_decisions(self, decisions: Sequence[Decided]) -> None:
        if not decisions:
            return
        self._decisions.append(decisions)
        self._decision_count += len(decisions)
        self._decision_bytes += _bytes_of(decisions)
        while self._decision_count > DECISIONS_MAX or self._decision_bytes > DECISION_BYTES_MAX:
            oldest = self._decisions.popleft()
            self._decision_count -= len(oldest)
            self._decision_bytes -= _bytes_of(oldest)
            self._dropped += len(oldest)
            if not self._decisions:
                return

    def take(self) -> Received:
        """Take everything that waits. After a stale result, pages are collected from this call on."""
        with self._lock:
            taken = Received(
                self._through,
                self._clusters,
                self._pages,
                self._is_stale,
                list(self._decisions),
                self._dropped,
                self._committed_steady_ms,
            )
            self._empty()
            return taken


def _bytes_of(decisions: Sequence[Decided]) -> int:
    return sum([run.byte_count for run in runs_in(decisions)])
