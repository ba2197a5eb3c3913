"""The format and level of log lines, and a limit for lines that repeat, so that no peer fills a disk with them."""

import logging
import sys
import time
from collections.abc import Callable, MutableMapping
from typing import Any, Literal

import msgspec

from isrflow.masking import masked

Level = Literal["debug", "info", "warning", "error"]
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


def configure(log_format: Literal["auto", "json", "console"], level: Level = "info") -> None:
    """Send structured log lines of at least ``level`` to standard error, in the format of ``is_json``."""
    # Imported here because only the long-running job logs, and short commands should start fast.
    import structlog

    console = not is_json(log_format)
    # Its default formatter prints local variables, and these may hold passwords.
    plain = structlog.dev.plain_traceback
    renderer = (
        structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain)
        if console
        else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            LogLimit(),
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *([] if console else [structlog.processors.format_exc_info]),
            _without_passwords,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )


def is_json(log_format: Literal["auto", "json", "console"]) -> bool:
    """Return whether log lines are JSON. ``auto`` means console on a terminal, JSON elsewhere."""
    return log_format == "json" or (log_format == "auto" and not sys.stderr.isatty())


def _without_passwords(logger: Any, method: str, facts: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    for name, value in facts.items():
        if isinstance(value, str):
            facts[name] = masked(value)
    return facts


def tell_end(message: str, exit_code: int) -> None:
    """Log why the process ends."""
    import structlog

    structlog.get_logger("isrflow").error(message, exit_code=exit_code)
