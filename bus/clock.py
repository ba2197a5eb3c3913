"""The machine's clocks: one to write down when something was, and one to measure how long it took."""

import time


def now_ms() -> int:
    """Read the wall clock: milliseconds since the Unix epoch, as events carry it.

    It may be set, forward and back: never measure with it.
    """
    return time.time_ns() // 1_000_000


def steady_ms() -> int:
    """Read a clock that only goes on, and nobody sets: milliseconds since some moment."""
    return time.monotonic_ns() // 1_000_000
