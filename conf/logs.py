"""The format and level of log lines: JSON for machines, columns for people."""

import logging
import sys
from collections.abc import MutableMapping
from typing import Any, Literal

from conf.log_limit import LogLimit
from isrflow.masking import masked

Level = Literal["debug", "info", "warning", "error"]


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
