"""Log lines that repeat are limited, and what was left out is counted."""

from typing import Any

import pytest
from structlog import DropEvent

from conf import logs
from conf.logs import LogLimit


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def passed(limit: LogLimit, message: str, **fields: Any) -> dict[str, Any] | None:
    try:
        return dict(limit(None, "info", {"event": message, **fields}))
    except DropEvent:
        return None


def test_a_message_that_repeats_is_left_out_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "LINES_PER_WINDOW_MAX", 2)
    clock = Clock()
    limit = LogLimit(clock)
    shown = [passed(limit, "not authorized", number=number) for number in range(5)]
    assert shown == [{"event": "not authorized", "number": 0}, {"event": "not authorized", "number": 1}, *[None] * 3]
    assert passed(limit, "another") == {"event": "another"}, "others are not held up"
    clock.now_s = 61.0
    assert passed(limit, "not authorized") == {"event": "not authorized", "left_out": 3}
    assert passed(limit, "not authorized") == {"event": "not authorized"}


def test_messages_that_never_repeat_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MESSAGES_MAX", 10)
    limit = LogLimit(Clock())
    for number in range(100):
        assert passed(limit, f"message {number}") is not None
    assert len(limit) == 10
