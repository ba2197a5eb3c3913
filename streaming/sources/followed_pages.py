"""The state of a bus on Kafka as batches of the pages that changed, for a job that stands by.

The first batch has all pages. A later one has the pages written since. A commit changes few pages, and each page counts
only in its newest version, so one batch takes in what the active engine has written in some seconds:

    active engine   commit  commit  commit  commit  commit  †
    this reader     ──── all pages ──── changed pages ─────   changed pages ── the claim ── events

A batch costs a standby about as much as it costs an engine, so there are few. But a last batch follows soon after the
active engine has fallen silent. So a standby that takes over has little left to take in.
"""

from bus import pieces
from bus.clock import steady_ms
from bus.interface import BusError, Page
from bus.kafka.connection import AWAY_TIMEOUT_S, Connection
from bus.kafka.mark import Mark
from bus.kafka.state_reader import StateReader
from isrflow.kafka.address import Address
from streaming.claim_note import ClaimNote

# Each look is a request to Kafka.
LOOK_INTERVAL_MS = 100
BATCH_INTERVAL_MS = 5_000


class FollowedPages:
    """A reader of the pages of a state that was laid out again ``layouts`` times, until that happens once more.

    If the state has not changed for ``quiet_ms``, a batch does not wait for ``BATCH_INTERVAL_MS``.
    """

    def __init__(self, address: Address, layouts: int, quiet_ms: int) -> None:
        self._reader = StateReader(Connection(address, AWAY_TIMEOUT_S))
        self._address = address
        self._layouts = layouts
        self._quiet_ms = quiet_ms
        self._looked_ms = self._planned_ms = self._changed_ms = -BATCH_INTERVAL_MS
        self._seen = 0
        # The batch that was planned last: the state before it, the state after it, and the pages that it changes.
        self._after = self._through = 0
        self._pages: list[Page] = []

    def plan(self, after: int, claim_note: ClaimNote | None) -> int:
        """Return up to which seq the state of the next batch is: ``after`` if there is no next batch now.

        ``after`` is the seq of the batch before, 0 for the first one. With ``claim_note`` the batch is due at once, and
        has all that was written before the claim. Raises ``BusError``.
        """
        now_ms = steady_ms()
        if claim_note is None and now_ms - self._looked_ms < LOOK_INTERVAL_MS:
            return after
        self._looked_ms = now_ms
        committed_seq = claim_note.committed_seq if claim_note else 0
        mark = self._reader.read_to_end(Mark(through=committed_seq, layouts=self._layouts))
        if mark.layouts != self._layouts:
            raise BusError(f"bus {self._address}: the state was laid out again")
        through = mark.through
        if through != self._seen:
            self._seen, self._changed_ms = through, now_ms
        if through == after or not (claim_note or self._is_due(now_ms)):
            return after
        self._planned_ms = now_ms
        self._after, self._through = after, through
        self._pages = pieces.joined(Page(*key, body) for key, body in self._reader.take().items())
        return through

    def _is_due(self, now_ms: int) -> bool:
        return now_ms - self._planned_ms >= BATCH_INTERVAL_MS or now_ms - self._changed_ms >= self._quiet_ms

    def between(self, after: int, through: int) -> list[Page]:
        """Return the pages of a batch. Raises ``BusError`` if it is not the one that was planned last."""
        if (after, through) != (self._after, self._through):
            raise BusError(f"bus {self._address}: the pages from seq {after} to {through} cannot be read again")
        return self._pages

    def close(self) -> None:
        self._reader.close()
