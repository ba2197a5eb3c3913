"""Wait until something holds, with a bound."""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")

# Far more than a quiet machine needs, because a machine under other tests may give a process no time for a while.
TIMEOUT_S = 120.0
# The longer the wait, the longer the pauses, because a look may read the state of a whole cluster.
POLL_S, POLL_MAX_S = 0.01, 0.05
POLLS_PER_WAIT = 20


def wait_until(condition: Callable[[], Any], what: str, timeout_s: float = TIMEOUT_S) -> Any:
    """Poll until ``condition`` returns something true, and return that. Raises ``TimeoutError`` naming ``what``."""
    begun = time.monotonic()
    while not (value := condition()):
        waited_s = time.monotonic() - begun
        if waited_s > timeout_s:
            raise TimeoutError(f"waited {timeout_s:.0f} s for {what}")
        time.sleep(min(POLL_MAX_S, max(POLL_S, waited_s / POLLS_PER_WAIT)))
    return value


def wait_until_equal(read: Callable[[], T], expected: T, what: str) -> None:
    """Poll until ``read`` returns what is expected. Raises ``AssertionError`` with the difference at the end."""
    with suppress(TimeoutError):
        wait_until(lambda: read() == expected, what)
    assert read() == expected
