"""How a process notices that it stood still."""

import pytest

from bus import clock
from bus.clock import StallWatch


@pytest.mark.parametrize(("slept_ms", "late_ms"), [(1_000, 0), (1_249, 0), (1_250, 250), (3_601_000, 3_600_000)])
def test_a_wait_is_late_if_it_reaches_the_least_lateness(
    monkeypatch: pytest.MonkeyPatch, slept_ms: int, late_ms: int
) -> None:
    now_ms = 5_000
    monkeypatch.setattr(clock, "steady_ms", lambda: now_ms)
    stall = StallWatch(wait_ms=1_000, lateness_ms_min=250)
    now_ms += slept_ms
    assert stall.end() == late_ms
    now_ms += 1_000
    assert stall.end() == 0, "a stall is reported once"


def test_time_between_two_waits_is_no_stall(monkeypatch: pytest.MonkeyPatch) -> None:
    now_ms = 5_000
    monkeypatch.setattr(clock, "steady_ms", lambda: now_ms)
    stall = StallWatch(wait_ms=1_000, lateness_ms_min=250)
    now_ms += 10_000
    stall.begin()
    now_ms += 1_000
    assert stall.end() == 0
