"""Whether a batch is decided in time for what admins asked in it.

The rules know that a request is too late where a claim found it undecided. A job that stood still, or is slow,
has made no claim meanwhile: so it asks before it commits a batch, and commits none that comes too late for what was
asked in it. It claims once more instead, and decides the batch again, which now says so.
"""

from bus.clock import steady_ms
from bus.interface import Bus, Claim
from state.cluster import Cluster

# What is done by so much too late is not worth a claim, which holds up everybody for as long as a query takes to start.
LATE_MS_MAX = 1_000
# A claim gives all brokers a whole session, and in between those that are silent must be found out.
SESSIONS_BETWEEN_CLAIMS = 2


class LateError(Exception):
    """A batch would do what was asked too long ago; after another claim the rules know that."""


class Deadlines:
    """Measure how late a batch is by the bus's clock, which goes on from the newest claim, and leaps as ticks tell.

    After a claim that was made for this there is no other for two sessions, so an engine that is slower than what is
    asked of it goes on all the same. Within that time nothing is later than it is long, because the claim has found
    what was over by then.
    """

    def __init__(self, bus: Bus, session_ms: int) -> None:
        self._bus = bus
        self._between_claims_ms = SESSIONS_BETWEEN_CLAIMS * session_ms
        self._claim = Claim(0, 0, 0)
        self._ahead_ms = 0
        self._claimed_again_ms: int | None = None

    def begin(self, claim: Claim) -> None:
        """Go by the time of a job's claim from now on."""
        now_ms = steady_ms()
        if self._claim.controller_epoch:
            self._claimed_again_ms = now_ms
        self._claim = claim
        self._ahead_ms = claim.entered_ms - now_ms

    def decided(self, cluster: Cluster) -> None:
        """Hear when the newest tick that is decided reached the bus: its clock may have been set since the claim."""
        self._ahead_ms = max(self._ahead_ms, cluster.clock_entered_ms - steady_ms())

    def check(self, through: int, expires_ms: int) -> None:
        """Raise ``LateError`` where it is too late to decide what may be decided up to ``expires_ms``.

        A batch that is on the bus already stays as it is.
        """
        now_ms = steady_ms()
        late_ms = now_ms + self._ahead_ms - expires_ms
        if late_ms <= LATE_MS_MAX or through <= self._bus.decided_seq():
            return
        if self._claimed_again_ms is None or now_ms - self._claimed_again_ms >= self._between_claims_ms:
            raise LateError(f"what an admin asked was to be done {late_ms} ms ago")
