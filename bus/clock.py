"""The machine's clocks: one to write down when something was, and one to measure how long it took."""

import time

_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def now_ms() -> int:
    """Read the wall clock: milliseconds since the Unix epoch, as events carry it.

    It may be set, forward and back: never measure with it.
    """
    return time.time_ns() // 1_000_000


def steady_ms() -> int:
    """Read a clock that only goes on, and nobody sets: milliseconds since some moment.

    Where there is such a one, it goes on while the machine is suspended.
    """
    return time.clock_gettime_ns(_STEADY) // 1_000_000
