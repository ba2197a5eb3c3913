"""Whether requests of admins are decided before they expire.

The rules know that a request is too late only if something on the bus says that it was still undecided by then: a
claim, or a tick that tells it.

    the engine was slow, or stood still during a batch ──► after it such a tick is published, before the next batch
    the engine stood still between two batches ──► no tick can tell it: the next batch was read the moment it woke up

In the second case a batch with a request that expired during the standstill is not committed, however long the batch
took after it. The job claims once more and decides the batch again, and now the rules know. An engine that is slow
never does that, because it has no time for another pass. A request that expires while its batch is decided is carried
out, as on Kafka's controller.
"""

from collections.abc import Callable

from bus.clock import steady_ms
from bus.interface import Bus, Claim
from state.cluster import Cluster
from streaming.ticker import Sleep

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
        self._longest_sleep: Callable[[], Sleep] = lambda: Sleep(0, 0)
        self._committed_ms = 0

    def begin(self, claim: Claim, longest_sleep: Callable[[], Sleep]) -> None:
        """Measure from a job's claim from now on. ``longest_sleep`` returns the longest one since it was last asked."""
        self._committed_ms = steady_ms()
        self._ahead_ms = claim.entered_ms - self._committed_ms
        self._longest_sleep = longest_sleep

    def decided(self, cluster: Cluster) -> None:
        """Compare the clock with the newest decided tick, because the bus's clock may have been set since the claim."""
        self._ahead_ms = max(self._ahead_ms, cluster.clock_entered_ms - steady_ms())

    def should_tell(self, through: int) -> bool:
        """Return whether the batch through ``through``, just committed, was slow, and events wait behind it.

        It was slow, too, if the engine stood still meanwhile.
        """
        now_ms = steady_ms()
        before_ms, self._committed_ms = self._committed_ms, now_ms
        # This also forgets the sleep, because it says nothing of the next batch.
        stood_still = self._longest_sleep().lasted_ms >= STANDSTILL_MS
        is_slow = stood_still or now_ms - before_ms >= SLOW_BATCH_MS
        return is_slow and self._bus.committed_seq() == through < self._bus.due_seq(through)

    def check(self, through: int, expires_ms: int) -> None:
        """Raise ``LateError`` if a request expired at ``expires_ms``, and the engine stood still at that time.

        A batch that is already on the bus stays as it is.
        """
        now_ms, expired_ms = steady_ms(), expires_ms - self._ahead_ms
        late_ms = now_ms - expired_ms
        if late_ms <= LATE_MS_MAX or through <= self._bus.decided_seq():
            return
        if self._claimed_again_ms is not None and now_ms - self._claimed_again_ms < BETWEEN_CLAIMS_MS:
            return
        sleep = self._longest_sleep()
        if sleep.lasted_ms >= STANDSTILL_MS and sleep.began_ms - LATE_MS_MAX <= expired_ms <= sleep.ended_ms:
            self._claimed_again_ms = now_ms
            raise LateError(f"the engine stood still, and an admin's request expired {late_ms} ms ago")
