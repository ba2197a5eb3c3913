"""A wait for a process to start. It takes longer while the process moves on, because the machine may be busy."""

import time
from collections.abc import Callable

# The whole wait takes at most this many time-outs.
TIMEOUTS_MAX = 4
# A process that has not moved for this part of a time-out stands still.
_STILL = 1 / 3
_LOOKS = 20


class Patience:
    """A wait of ``timeout_s``, and longer while ``moved`` returns something new, up to ``TIMEOUTS_MAX`` time-outs."""

    def __init__(
        self, timeout_s: float, moved: Callable[[], object], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._timeout_s = timeout_s
        self._moved = moved
        self._clock = clock
        self._began_s = self._looked_s = self._moved_s = clock()
        self._seen = moved()

    @property
    def waited_s(self) -> float:
        """How long the wait has lasted."""
        return self._clock() - self._began_s

    def is_over(self) -> bool:
        """Return whether the wait has lasted long enough. Call it often, because each call looks for movement."""
        now_s = self._clock()
        if now_s - self._looked_s >= self._timeout_s / _LOOKS:
            self._looked_s, seen = now_s, self._moved()
            if seen != self._seen:
                self._seen, self._moved_s = seen, now_s
        waited_s = now_s - self._began_s
        stands_still = now_s - self._moved_s > self._timeout_s * _STILL
        return waited_s > TIMEOUTS_MAX * self._timeout_s or (waited_s > self._timeout_s and stands_still)
