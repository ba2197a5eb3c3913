"""The state of a bus on Kafka as batches of the pages that changed, for a job that stands by.

The first batch has all pages. A later one has those that were written since. A commit changes few pages, and each page
counts only in its newest version, so one batch takes in what the active engine has written in some seconds:

    active engine   commit  commit  commit  commit  commit  †
    this reader     ──── all pages ──── changed pages ─────   changed pages ── the claim ── events

A batch costs a standby about as much as it costs an engine, so there are few. But one follows soon after the active
engine has fallen silent. So a standby that takes over has nothing left to read.
"""

from pathlib import Path

from bus import pieces
from bus.clock import steady_ms
from bus.interface import Page
from bus.kafka.connection import Connection
from bus.kafka.mark import Mark
from bus.kafka.state_reader import StateReader
from isrflow.kafka.address import parse
from streaming.handover import Handover, handed_over

# Each look is a request to Kafka.
LOOK_INTERVAL_MS = 200
BATCH_INTERVAL_MS = 5_000


class FollowedPages:
    """A reader of the state's pages, until the note in ``handover`` says that this job decides.

    If the state has not changed for ``quiet_ms``, its changes need not wait for ``BATCH_INTERVAL_MS``.
    """

    def __init__(self, url: str, handover: Path, quiet_ms: int) -> None:
        self._reader = StateReader(Connection(parse(url)))
        self._file = handover
        self._quiet_ms = quiet_ms
        self._looked_ms = self._planned_ms = self._changed_ms = -BATCH_INTERVAL_MS
        self._seen = 0
        self._pages: list[Page] = []

    def handed_over(self) -> Handover | None:
        """Return the note; None if the job still stands by."""
        return handed_over(self._file)

    def plan(self, after: int, handover: Handover | None) -> int:
        """Return up to which seq the state of the next batch is: ``after`` if there is no next batch now.

        ``after`` is the seq of the batch before, 0 for the first one. With ``handover`` the batch is due at once, and
        has all that was written before the claim. Raises ``BusError``.
        """
        now_ms = steady_ms()
        if handover is None and now_ms - self._looked_ms < LOOK_INTERVAL_MS:
            return after
        self._looked_ms = now_ms
        through = self._reader.read_to_end(Mark(through=handover.decided if handover else 0)).through
        if through != self._seen:
            self._seen, self._changed_ms = through, now_ms
        if through == after or not (handover or self._is_due(now_ms)):
            return after
        self._planned_ms = now_ms
        self._pages = pieces.joined(Page(*key, body) for key, body in self._reader.take().items())
        return through

    def _is_due(self, now_ms: int) -> bool:
        return now_ms - self._planned_ms >= BATCH_INTERVAL_MS or now_ms - self._changed_ms >= self._quiet_ms

    def take(self) -> list[Page]:
        """Return the pages of the batch that was planned last."""
        taken, self._pages = self._pages, []
        return taken

    def close(self) -> None:
        self._reader.close()
