"""The format of log lines: JSON for machines, columns for people."""

import sys
from typing import Literal


def configure(log_format: Literal["auto", "json", "console"]) -> None:
    """Send structured log lines to standard error. ``auto`` means console on a terminal, json elsewhere."""
    # Imported here because only the long-running job logs, and short commands should start fast.
    import structlog

    console = log_format == "console" or (log_format == "auto" and sys.stderr.isatty())
    renderer = (
        structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty()) if console else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *([] if console else [structlog.processors.format_exc_info]),
            renderer,
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
