"""Fixtures of the tests of metrics."""

import pytest

from bus.clock import steady_ms
from sinks import metrics


class Still:
    """A steady clock that is moved by hand."""

    def __init__(self) -> None:
        self.now_ms = steady_ms()


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> Still:
    """Let the clock of the metrics stand still."""
    made = Still()
    monkeypatch.setattr(metrics, "steady_ms", lambda: made.now_ms)
    return made
