"""Log lines about the difference between the engine's clock and the bus's."""

import structlog

from bus.clock import now_ms
from state.cluster import Cluster
from state.ids import NO_TIME

# The clocks of well-kept hosts differ by less than this.
SKEW_MS_MIN = 2_000

logger = structlog.get_logger("isrflow.clock")


class SkewLog:
    """Lines on how far the engine's clock is off: when that begins, has doubled or halved, and ends."""

    def __init__(self) -> None:
        self._said_ms = 0
        self._clock_ms = 0

    def decided(self, cluster: Cluster) -> None:
        """Check the clock after a batch."""
        if cluster.clock_ms < self._clock_ms:
            logger.warning("the engine's clock was set back by a claim", by_ms=self._clock_ms - cluster.clock_ms)
        self._clock_ms = cluster.clock_ms
        # Compare with the entry time of the newest tick, because a batch that waited is no skew.
        entered_ms = now_ms() if cluster.clock_entered_ms == NO_TIME else cluster.clock_entered_ms
        skew_ms = cluster.clock_ms - entered_ms
        shown_ms = skew_ms if abs(skew_ms) >= SKEW_MS_MIN else 0
        if not shown_ms and self._said_ms:
            logger.info("the engine's clock agrees with the bus's again")
        elif shown_ms and not 0.5 < (shown_ms / self._said_ms if self._said_ms else 0) < 2:
            logger.warning(
                "the engine's clock is ahead of the bus's, or behind it if by_ms is negative", by_ms=shown_ms
            )
        else:
            return
        self._said_ms = shown_ms
