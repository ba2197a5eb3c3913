"""The engine's time: it begins with the wall clock, goes on with the steady one, and leans towards the wall clock."""

import threading
from collections import deque

import structlog

from bus.clock import now_ms, steady_ms

# Of the time that passes, how much at most is given or taken to come closer to the wall clock: a session of nine
# seconds then lasts nine tenths of a second more or less.
LEAN = 0.1
# What is set by less is what time servers do all the while.
STEP_MS_MIN = 1_000
# As many ticks may wait to be decided; of more the oldest are no longer looked at.
TICKS_KEPT = 10_000

log = structlog.get_logger("isrflow.clock")


class EngineClock:
    """Tell the time that ticks carry; it never goes back, and no faster than time passes but for ``LEAN``.

    So a wall clock that is set, forward or back, neither ends sessions nor makes them last; that it was
    is told in the log and counted in ``steps``. Several threads may read it; ``told`` and ``decided`` take turns.
    """

    def __init__(self) -> None:
        self.steps = 0
        self._lock = threading.Lock()
        self._steady_ms, self._wall_ms = steady_ms(), now_ms()
        self._time_ms = float(self._wall_ms)
        self._told: deque[tuple[int, int]] = deque(maxlen=TICKS_KEPT)

    def read_ms(self) -> int:
        """Tell the time."""
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
            log.warning("the wall clock was set; the engine's clock goes on and leans towards it", by_ms=step_ms)

    def told(self, seq: int, time_ms: int) -> None:
        """Note that the tick ``seq`` told this time; before ``decided`` hears of it."""
        self._told.append((seq, time_ms))

    def decided(self, through: int, clock_ms: int) -> None:
        """Go on from the clock that the rules have after the events up to ``through``, where that is another.

        So it is after a claim, if the clock of the job before was ahead of this one.
        """
        newest_ms = None
        while self._told and self._told[0][0] <= through:
            _, newest_ms = self._told.popleft()
        if newest_ms is not None and newest_ms != clock_ms:
            with self._lock:
                self._time_ms += clock_ms - newest_ms
            # What was told before tells the same difference once more.
            self._told.clear()
