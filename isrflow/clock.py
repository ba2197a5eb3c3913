"""The time of day, as events carry it."""

import time


def now_ms() -> int:
    """Return the wall clock: milliseconds since the Unix epoch.

    Never measure with it, because it may be set forward and back.
    """
    return time.time_ns() // 1_000_000
