"""Whether a batch is decided before the requests of admins in it expire.

The rules know that a request is too late only if a claim found it undecided. A job that stood still, or is slow, has
made no claim meanwhile. So before it commits a batch, it checks the deadlines in the batch. If one has passed, it does
not commit. It claims once more and decides the batch again, and now the rules know.
"""

from bus.clock import steady_ms
from bus.interface import Bus, Claim
from state.cluster import Cluster

# A smaller delay is not worth a claim, which stops all decisions while a query starts.
LATE_MS_MAX = 1_000
# A claim gives every broker a whole new session. Silent brokers are found only if there are sessions without a claim.
SESSIONS_BETWEEN_CLAIMS = 2


class LateError(Exception):
    """A batch would carry out a request that has expired. After another claim the rules know that."""


class Deadlines:
    """The check of deadlines by the bus's clock. The clock is read at the newest claim and at decided ticks.

    After a claim because of a late batch, no other such claim follows for two sessions, so an engine that is always too
    slow still decides. In that time a request can be late by two sessions at most, because the claim found all requests
    that were late before it.
    """

    def __init__(self, bus: Bus, session_ms: int) -> None:
        self._bus = bus
        self._between_claims_ms = SESSIONS_BETWEEN_CLAIMS * session_ms
        self._claim = Claim(0, 0, 0)
        self._ahead_ms = 0
        self._claimed_again_ms: int | None = None

    def begin(self, claim: Claim) -> None:
        """Measure from a job's claim from now on."""
        now_ms = steady_ms()
        if self._claim.controller_epoch:
            self._claimed_again_ms = now_ms
        self._claim = claim
        self._ahead_ms = claim.entered_ms - now_ms

    def decided(self, cluster: Cluster) -> None:
        """Compare the clock with the newest decided tick, because the bus's clock may have been set since the claim."""
        self._ahead_ms = max(self._ahead_ms, cluster.clock_entered_ms - steady_ms())

    def check(self, through: int, expires_ms: int) -> None:
        """Raise ``LateError`` if it is too late to decide what expires at ``expires_ms``.

        A batch that is already on the bus stays as it is.
        """
        now_ms = steady_ms()
        late_ms = now_ms + self._ahead_ms - expires_ms
        if late_ms <= LATE_MS_MAX or through <= self._bus.decided_seq():
            return
        if self._claimed_again_ms is None or now_ms - self._claimed_again_ms >= self._between_claims_ms:
            raise LateError(f"an admin's request expired {late_ms} ms ago")
