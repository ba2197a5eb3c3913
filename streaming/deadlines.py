"""Whether requests of admins are decided before they expire.

The rules know that a request is too late only if something on the bus says that it was still undecided by then: a
claim, or a tick that tells it.

    the engine is slow ──► after a slow batch it publishes such a tick, before it reads the next batch
    the engine stood still ──► no tick can tell it: the batch was read before, or the moment it woke up

In the second case a batch with an expired request is not committed. The job claims once more and decides the batch
again, and now the rules know. An engine that is slow never does that, because it has no time for another pass. A
request that expires while its batch is decided is carried out, as on Kafka's controller.
"""

from collections.abc import Callable

from bus.clock import steady_ms
from bus.interface import Bus, Claim
from state.cluster import Cluster

# A thread of a running process sleeps for less than this, even on a busy machine.
STANDSTILL_MS = 3_000
# If a machine is so busy that it seems to stand still again and again, the engine still decides.
BETWEEN_CLAIMS_MS = 600_000
# A smaller delay is not worth a claim, which stops all decisions while a query starts.
LATE_MS_MAX = 1_000
# After such a batch one more tick costs nothing. Admins' time-outs are longer.
SLOW_BATCH_MS = 5_000


class LateError(Exception):
    """A batch would carry out a request that has expired. After another claim the rules know that."""


class Deadlines:
    """The check of deadlines by the bus's clock. The clock is read at the newest claim and at decided ticks.

    After a claim because of a late batch, no other such claim follows for ten minutes.
    """

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._ahead_ms = 0
        self._claimed_again_ms: int | None = None
        self._slept_ms: Callable[[], int] = lambda: 0
        self._committed_ms = 0

    def begin(self, claim: Claim, slept_ms: Callable[[], int]) -> None:
        """Measure from a job's claim from now on. ``slept_ms`` returns the longest sleep since it was last asked."""
        self._committed_ms = steady_ms()
        self._ahead_ms = claim.entered_ms - self._committed_ms
        self._slept_ms = slept_ms

    def decided(self, cluster: Cluster) -> None:
        """Compare the clock with the newest decided tick, because the bus's clock may have been set since the claim."""
        self._ahead_ms = max(self._ahead_ms, cluster.clock_entered_ms - steady_ms())
        # A sleep before this batch says nothing of the next one.
        self._slept_ms()

    def should_tell(self, through: int) -> bool:
        """Return whether the batch through ``through``, just committed, was slow, and events wait behind it."""
        now_ms = steady_ms()
        before_ms, self._committed_ms = self._committed_ms, now_ms
        is_slow = now_ms - before_ms >= SLOW_BATCH_MS
        return is_slow and self._bus.committed_seq() == through < self._bus.due_seq(through)

    def check(self, through: int, expires_ms: int) -> None:
        """Raise ``LateError`` if the engine stood still until after ``expires_ms``, when a request expired.

        A batch that is already on the bus stays as it is.
        """
        now_ms = steady_ms()
        late_ms = now_ms + self._ahead_ms - expires_ms
        if late_ms <= LATE_MS_MAX or through <= self._bus.decided_seq():
            return
        is_rare = self._claimed_again_ms is None or now_ms - self._claimed_again_ms >= BETWEEN_CLAIMS_MS
        if is_rare and self._slept_ms() >= max(STANDSTILL_MS, late_ms - LATE_MS_MAX):
            self._claimed_again_ms = now_ms
            raise LateError(f"the engine stood still, and an admin's request expired {late_ms} ms ago")
