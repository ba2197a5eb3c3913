"""Whether a batch is decided in time for what admins asked in it.

The rules know that a request is too late if a claim found it undecided. A job that stood still, or is slow, has made no
claim meanwhile. So before it commits a batch, it checks the deadlines in the batch. If one has passed, it does not
commit. It claims once more and decides the batch again, and now the rules know.
"""

from bus.clock import steady_ms
from bus.interface import Bus, Claim
from state.cluster import Cluster

# A smaller delay is not worth a claim, which stops all decisions while a query starts.
LATE_MS_MAX = 1_000
# A claim gives every broker a whole new session, so silent brokers are only found between claims.
SESSIONS_BETWEEN_CLAIMS = 2


class LateError(Exception):
    """A batch would do what was asked for too long ago. After another claim the rules know that."""


class Deadlines:
    """How late a batch is by the bus's clock, which starts at the newest claim and leaps as ticks show.

    After such a claim there is no other one for two sessions. So an engine that is always too slow still decides. In
    that time nothing can be later than that time, because the claim found everything that was over before.
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
        """Take in when the newest decided tick reached the bus, whose clock may have been set since the claim."""
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
