"""A limit for log lines that repeat, so that no peer and no failure fills a disk with them."""

import time
from collections.abc import Callable, MutableMapping
from typing import Any

import msgspec

LINES_PER_WINDOW_MAX = 300
WINDOW_S = 60.0
# Most messages are fixed texts. Beyond this number the oldest are forgotten.
MESSAGES_MAX = 1_000


class _Window(msgspec.Struct):
    """The lines of one message since ``begin_s``."""

    begin_s: float
    lines: int = 0
    left_out: int = 0


class LogLimit:
    """A step of structlog that lets a message pass ``LINES_PER_WINDOW_MAX`` times in a window, whatever its fields.

    The first line after a window that left lines out has their number in its field ``left_out``.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._windows: dict[str, _Window] = {}

    def __len__(self) -> int:
        """Return how many messages are counted."""
        return len(self._windows)

    def __call__(self, logger: Any, method: str, fields: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        # Imported here because most commands do not log, and they should start fast.
        from structlog import DropEvent

        message, now_s = str(fields.get("event", "")), self._clock()
        window = self._windows.get(message)
        if window is None or now_s - window.begin_s >= WINDOW_S:
            if window is not None and window.left_out:
                fields["left_out"] = window.left_out
            window = self._begin(message, now_s)
        if window.lines >= LINES_PER_WINDOW_MAX:
            window.left_out += 1
            raise DropEvent
        window.lines += 1
        return fields

    def _begin(self, message: str, now_s: float) -> _Window:
        self._windows.pop(message, None)
        if len(self._windows) >= MESSAGES_MAX:
            del self._windows[next(iter(self._windows))]
        window = self._windows[message] = _Window(now_s)
        return window
