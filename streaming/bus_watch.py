"""How far the bus is ahead of this job, and whether another program's open transaction keeps the job from deciding."""

from collections.abc import Callable

import structlog

from bus.clock import steady_ms
from bus.interface import Bus
from sinks.metrics import Metrics

# A program that publishes in transactions keeps each of them open for a moment.
BLOCKED_AFTER_MS = 2_000
# Each look is four requests to Kafka.
LOOK_INTERVAL_MS = 1_000

logger = structlog.get_logger("isrflow.job")


class BusWatch:
    """What waits on the bus: the newest event, and events that cannot be decided (``Bus.blocked``), since when."""

    def __init__(self, bus: Bus, metrics: Metrics, clock: Callable[[], int] = steady_ms) -> None:
        self._bus = bus
        self._metrics = metrics
        self._clock = clock
        self._look_at_ms = 0
        self._offset: int | None = None
        self._since_ms = 0
        self._blocker = ""

    def look(self) -> None:
        """Look at the bus, record what is found in the metrics, and log what lasts. Raises ``BusError``."""
        self._metrics.bus_at(self._bus.due_seq(self._metrics.decided_seq))
        now_ms = self._clock()
        if now_ms >= self._look_at_ms:
            self._look_at_ms = now_ms + LOOK_INTERVAL_MS
            self._look_for_blocked(now_ms)

    def _look_for_blocked(self, now_ms: int) -> None:
        blocked = self._bus.blocked()
        offset = blocked.offset if blocked else None
        if offset != self._offset:
            self._end(now_ms)
            self._offset, self._since_ms = offset, now_ms
        if blocked is None:
            self._metrics.blocked(0, 0, "")
            return
        lasted_ms = now_ms - self._since_ms
        if lasted_ms >= BLOCKED_AFTER_MS and not self._blocker:
            self._blocker = self._bus.blocker()
            if self._blocker:
                logger.warning("events cannot be decided", because_of=self._blocker)
        self._metrics.blocked(blocked.records, lasted_ms, self._blocker)

    def _end(self, now_ms: int) -> None:
        if self._blocker:
            logger.info("events can be decided again", after_ms=now_ms - self._since_ms)
            self._blocker = ""
