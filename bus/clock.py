"""The machine's clocks: one for the time of day, and one to measure how long something took."""

import time

from isrflow.clock import now_ms as now_ms

_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def steady_ms() -> int:
    """Return milliseconds since an arbitrary moment, by a clock that never goes back and cannot be set.

    Where the system has such a clock, it also counts while the machine is suspended.
    """
    return time.clock_gettime_ns(_STEADY) // 1_000_000


class StallWatch:
    """A watch that measures how much longer than planned a wait took.

    A wait is too long when the process was stopped, or when its machine stalled or was suspended. Every busy machine
    wakes a sleeper somewhat late, so lateness below ``lateness_ms_min`` counts as none.
    """

    def __init__(self, wait_ms: int, lateness_ms_min: int) -> None:
        self._wait_ms = wait_ms
        self._lateness_ms_min = lateness_ms_min
        self.begin()

    def begin(self) -> None:
        """Note that a wait of ``wait_ms`` begins."""
        self._began_ms = steady_ms()

    def end(self) -> int:
        """Return by how many milliseconds the wait was too long; the next wait begins now."""
        now_ms = steady_ms()
        late_ms = now_ms - self._began_ms - self._wait_ms
        self._began_ms = now_ms
        return late_ms if late_ms >= self._lateness_ms_min else 0
