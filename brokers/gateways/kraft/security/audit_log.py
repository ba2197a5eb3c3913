"""A file of who was allowed or denied what, like Kafka's authorizer log: denied at info, allowed at debug."""

import json
import logging
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, Literal

from msgspec.structs import asdict

from brokers.gateways.kraft.security.authorizer import Action, Verdict
from conf.private_dir import private_dir

AuditLevel = Literal["debug", "info", "off"]
FILE_NAME = "authorizer.log"
FILE_BYTES_MAX = 10 * 1024 * 1024
FILES_MAX = 10


class AuditLog:
    """The log of one gateway's decisions, in JSON lines: at most ``FILES_MAX`` files in ``directory``."""

    def __init__(self, directory: Path, level: AuditLevel) -> None:
        self._handler: RotatingFileHandler | None = None
        # Not a logger of the process, which may have several gateways.
        self._logger = logging.Logger("kafka.authorizer.logger")
        self._logger.setLevel(logging.CRITICAL if level == "off" else level.upper())
        if level != "off":
            private_dir(directory)
            self._handler = RotatingFileHandler(
                directory / FILE_NAME, maxBytes=FILE_BYTES_MAX, backupCount=FILES_MAX - 1, encoding="utf-8", delay=True
            )
            self._logger.addHandler(self._handler)

    def tell(self, principal: str, host: str, api: str, action: Action, verdict: Verdict) -> None:
        """Write one decision down, if the level asks for it."""
        level = logging.DEBUG if verdict.is_allowed else logging.INFO
        if not self._logger.isEnabledFor(level):
            return
        told: dict[str, Any] = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
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
        self._logger.log(level, json.dumps(told, ensure_ascii=False))

    def close(self) -> None:
        """Close the file."""
        if self._handler is not None:
            self._handler.close()
