"""Watch a bus for changes from one thread."""

import time
from collections.abc import Callable


def changes_by(changed: Callable[[], bool], ends_s: float, poll_interval_ms: int) -> bool:
    """Return whether a bus changes before ``ends_s`` of ``time.monotonic``, asking every ``poll_interval_ms``."""
    while not changed():
        if time.monotonic() >= ends_s:
            return False
        time.sleep(poll_interval_ms / 1000)
    return True
