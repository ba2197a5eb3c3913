"""How log lines look: JSON for machines, columns for people."""

import sys
from typing import Literal


def configure(log_format: Literal["auto", "json", "console"]) -> None:
    """Send structured log lines to standard error; ``auto`` is console on a terminal, json elsewhere."""
    # Only the long-running job logs: the short commands do not wait for this import.
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
