"""A file of who was allowed or denied what, like Kafka's authorizer log: denied at info, allowed at debug.

A decision about a request does not wait for the disk: a thread writes the lines, and rotates the files. When too many
lines wait for it, further ones are left out, and the file tells how many.
"""

import json
import logging
import queue
import threading
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

import structlog
from msgspec.structs import asdict

from brokers.gateways.kraft.security.authorizer import Action, Verdict
from brokers.gateways.kraft.settings import AuditLevel
from conf.private_dir import private_dir

FILE_NAME = "authorizer.log"
FILE_BYTES_MAX = 10 * 1024 * 1024
FILES_MAX = 10
LINES_WAITING_MAX = 10_000
# A gateway that ends waits this long for a disk that hangs.
CLOSE_TIMEOUT_S = 5.0

logger = structlog.get_logger()


class AuditLog:
    """The log of one gateway's decisions, in JSON lines: at most ``FILES_MAX`` files in ``directory``."""

    def __init__(self, directory: Path, level: AuditLevel) -> None:
        self._level = logging.CRITICAL if level == "off" else logging.getLevelNamesMapping()[level.upper()]
        # None ends the thread.
        self._waiting: queue.Queue[str | None] = queue.Queue(LINES_WAITING_MAX)
        self._left_out = 0
        self._thread: threading.Thread | None = None
        if level != "off":
            private_dir(directory)
            self._thread = threading.Thread(target=self._run, args=(directory,), name="audit-log", daemon=True)
            self._thread.start()

    def tell(self, principal: str, host: str, api: str, action: Action, verdict: Verdict) -> None:
        """Queue one decision for the file, if the level asks for it. Any thread may call this."""
        if self._level > (logging.DEBUG if verdict.is_allowed else logging.INFO):
            return
        told: dict[str, Any] = {
            "time": _now(),
            "principal": principal,
            "is": "Allowed" if verdict.is_allowed else "Denied",
            "operation": action.operation,
            "host": host,
            "resource": f"{action.resource_type}:LITERAL:{action.name}",
            "request": api,
            "rule": verdict.rule,
        }
        if verdict.acl is not None:
            told["acl"] = asdict(verdict.acl)
        try:
            self._waiting.put_nowait(json.dumps(told, ensure_ascii=False))
        except queue.Full:
            self._left_out += 1

    def _run(self, directory: Path) -> None:
        handler = RotatingFileHandler(
            directory / FILE_NAME, maxBytes=FILE_BYTES_MAX, backupCount=FILES_MAX - 1, encoding="utf-8", delay=True
        )
        line: str | None = ""
        while line is not None:
            line = self._waiting.get()
            if line is not None:
                handler.handle(_record(line))
            if self._left_out and (line is None or self._waiting.empty()):
                left_out, self._left_out = self._left_out, 0
                logger.warning("the audit log lacks decisions", left_out=left_out, why="its disk is too slow")
                handler.handle(_record(json.dumps({"time": _now(), "left_out": left_out})))
        handler.close()

    def close(self) -> None:
        """Write what still waits, and close the file."""
        if self._thread is None:
            return
        try:
            self._waiting.put(None, timeout=CLOSE_TIMEOUT_S)
        except queue.Full:
            logger.warning("the audit log lacks decisions", left_out=LINES_WAITING_MAX, why="its disk hangs")
        self._thread.join(CLOSE_TIMEOUT_S)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _record(line: str) -> logging.LogRecord:
    return logging.LogRecord("kafka.authorizer.logger", logging.INFO, "", 0, line, None, None)
