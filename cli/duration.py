"""Times in few characters: how long something has lasted, and when it was."""

from history.explanation import shown_time

# Each unit with its seconds, and the number from which on the next unit is exact enough.
_UNITS = (("s", 1, 120), ("min", 60, 120), ("h", 3_600, 48))


def duration(lasted_ms: int) -> str:
    """Return a duration as people say it: ``4 min``."""
    lasted_s = max(0, lasted_ms) // 1000
    for unit, unit_s, most in _UNITS:
        if lasted_s < unit_s * most:
            return f"{lasted_s // unit_s} {unit}"
    return f"{lasted_s // 86_400} days"


def second(time_ms: int) -> str:
    """Return a time to the second, in UTC."""
    return shown_time(time_ms, "seconds")
