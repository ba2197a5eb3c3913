"""The engine's time: it starts at the wall clock, runs with the steady clock, and leans towards the wall clock."""

import threading
from collections import deque

import structlog

from bus.clock import now_ms, steady_ms
from state.cluster import Cluster
from state.ids import NO_TIME

# The clock runs at most this much faster or slower than time passes, to approach the wall clock. A session of nine
# seconds then lasts at most nine tenths of a second more or less.
LEAN = 0.1
# Time servers make smaller steps all the time.
STEP_MS_MIN = 1_000
# How many ticks that wait to be decided are remembered. Beyond that the oldest ones are forgotten.
TICKS_KEPT = 10_000
# The clocks of well-kept hosts differ by less than this.
SKEW_MS_MIN = 2_000

logger = structlog.get_logger("isrflow.clock")


class EngineClock:
    """The time that ticks carry. Its speed is off by at most ``LEAN``, and ``decided`` may move it.

    So setting the wall clock, forward or back, makes a session at most a tenth longer or shorter. A step of the wall
    clock is logged and counted in ``steps``. Several threads may read the clock; ``note_tick`` and ``decided`` take
    turns.
    """

    def __init__(self) -> None:
        self.steps = 0
        self._lock = threading.Lock()
        self._steady_ms, self._wall_ms = steady_ms(), now_ms()
        self._time_ms = float(self._wall_ms)
        self._ticks: deque[tuple[int, int]] = deque(maxlen=TICKS_KEPT)

    def read_ms(self) -> int:
        """Return the time."""
        with self._lock:
            before_ms, wall_ms, steady_now_ms = steady_ms(), now_ms(), steady_ms()
            passed_ms = max(0, steady_now_ms - self._steady_ms)
            self._look_for_step(wall_ms - self._wall_ms - passed_ms, steady_now_ms - before_ms)
            self._steady_ms, self._wall_ms = steady_now_ms, wall_ms
            self._time_ms += passed_ms
            lean_ms = LEAN * passed_ms
            self._time_ms += min(lean_ms, max(-lean_ms, wall_ms - self._time_ms))
            return int(self._time_ms)

    def _look_for_step(self, step_ms: int, doubt_ms: int) -> None:
        if abs(step_ms) - doubt_ms >= STEP_MS_MIN:
            self.steps += 1
            logger.warning("the wall clock was set; the engine's clock goes on and leans towards it", by_ms=step_ms)

    def note_tick(self, seq: int, time_ms: int) -> None:
        """Note that the tick ``seq`` carried this time. Call it before ``decided`` can be called for that tick."""
        self._ticks.append((seq, time_ms))

    def decided(self, through: int, clock_ms: int) -> None:
        """Move this clock by as much as the rules' clock after event ``through`` differs from the newest tick's time.

        They differ after a claim if the previous job's clock was ahead of this one.
        """
        newest_ms = None
        while self._ticks and self._ticks[0][0] <= through:
            _, newest_ms = self._ticks.popleft()
        if newest_ms is not None and newest_ms != clock_ms:
            with self._lock:
                self._time_ms += clock_ms - newest_ms
            # Earlier ticks would show the same difference again.
            self._ticks.clear()


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
