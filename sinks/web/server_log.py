"""The server's own log lines, as lines of the engine's log: in JSON mode every line must be JSON."""

import logging

import structlog

# The parent of all of uvicorn's loggers.
SERVER = "uvicorn"

logger = structlog.get_logger("isrflow.web")


class ToEngineLog(logging.Handler):
    """A handler that writes the server's records to the engine's log."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        facts = {"error": repr(error)} if error else {}
        write = logger.error if record.levelno >= logging.ERROR else logger.warning
        # A traceback has line breaks, and the first line of the message says what it is.
        write(record.getMessage().split("\n")[0], **facts)


def log_to_engine() -> None:
    """Send the server's warnings and errors to the engine's log, and nothing to standard error."""
    server = logging.getLogger(SERVER)
    server.setLevel(logging.WARNING)
    server.propagate = False
    server.handlers = [ToEngineLog()]
