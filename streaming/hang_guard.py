"""End a job that was asked to end while Spark's JVM hangs.

The problem: a call of the JVM has no time-out. While the JVM is stopped or swapped out, or its disk hangs, the main
thread waits in a call, and obeys neither a signal nor another claim.

The insight: the end of the JVM ends every call of it. What is cut off is decided again, as after a kill.
"""

import threading
import time
from collections.abc import Callable

import structlog

# A batch gets ten seconds to end, and the ticker and retention twenty each, of which they take next to nothing.
END_TIMEOUT_S = 30.0
LOOK_INTERVAL_S = 1.0
JOIN_TIMEOUT_S = 5.0

logger = structlog.get_logger("isrflow.job")


class HangGuard(threading.Thread):
    """The thread that calls ``kill`` if the job ``must_end`` for ``timeout_s`` and its block does not end."""

    def __init__(
        self, must_end: Callable[[], bool], kill: Callable[[], object], timeout_s: float = END_TIMEOUT_S
    ) -> None:
        super().__init__(name="isrflow-hang-guard", daemon=True)
        self._must_end = must_end
        self._kill = kill
        self._timeout_s = timeout_s
        self._ended = threading.Event()

    def run(self) -> None:
        since_s: float | None = None
        while not self._ended.wait(min(LOOK_INTERVAL_S, self._timeout_s)):
            if not self._must_end():
                since_s = None
                continue
            now_s = time.monotonic()
            since_s = now_s if since_s is None else since_s
            if now_s - since_s >= self._timeout_s:
                logger.warning("Spark does not answer; ending its processes", waited_s=self._timeout_s)
                self._kill()
                return

    def __enter__(self) -> "HangGuard":
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        # It may be looking at the bus, which is closed next.
        self.join(JOIN_TIMEOUT_S)
