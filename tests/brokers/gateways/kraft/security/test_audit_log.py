"""Decisions about requests are written to the audit log, and no request waits for the disk."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from brokers.gateways.kraft.security import audit_log
from brokers.gateways.kraft.security.audit_log import FILE_NAME, AuditLog
from brokers.gateways.kraft.security.authorizer import DEFAULT_DENY, SUPER_USER
from brokers.gateways.kraft.security.operations import on_cluster
from tests.support.waiting import TIMEOUT_S


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / FILE_NAME).read_text().splitlines()]


def tell(audit: AuditLog, count: int, *, is_allowed: bool = False) -> None:
    for number in range(count):
        verdict = SUPER_USER if is_allowed else DEFAULT_DENY
        audit.tell(f"User:{number}", "10.0.0.1", "CreateTopics", on_cluster("CREATE"), verdict)


def test_lines_are_in_order_and_whole_when_it_is_closed(tmp_path: Path) -> None:
    audit = AuditLog(tmp_path, "info")
    tell(audit, 500)
    tell(audit, 1, is_allowed=True)
    audit.close()
    assert [one["principal"] for one in lines(tmp_path)] == [f"User:{number}" for number in range(500)]


def test_nobody_waits_for_a_disk_that_hangs_and_what_is_missing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hangs, goes_on = threading.Event(), threading.Event()

    class Hanging(audit_log.RotatingFileHandler):
        def emit(self, record: Any) -> None:
            hangs.set()
            assert goes_on.wait(TIMEOUT_S)
            super().emit(record)

    monkeypatch.setattr(audit_log, "RotatingFileHandler", Hanging)
    monkeypatch.setattr(audit_log, "LINES_WAITING_MAX", 10)
    audit = AuditLog(tmp_path, "info")
    tell(audit, 1)
    assert hangs.wait(TIMEOUT_S)
    tell(audit, 17)
    goes_on.set()
    audit.close()
    *told, last = lines(tmp_path)
    assert len(told) == 11
    assert last["left_out"] == 7


def test_a_gateway_ends_while_the_disk_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on = threading.Event()
    monkeypatch.setattr(audit_log.RotatingFileHandler, "emit", lambda handler, record: goes_on.wait(TIMEOUT_S))
    monkeypatch.setattr(audit_log, "CLOSE_TIMEOUT_S", 0.05)
    audit = AuditLog(tmp_path, "info")
    tell(audit, audit_log.LINES_WAITING_MAX + 2)
    audit.close()
    goes_on.set()
