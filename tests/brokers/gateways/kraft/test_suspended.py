"""A gateway on a suspended machine reports the delay; a set wall clock is no delay."""

import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from structlog.testing import capture_logs

from bus.clock import now_ms, steady_ms
from tests.support.gateway_in_process import InProcessQuorum
from tests.support.waiting import TIMEOUT_S, wait_until

SUSPENDED_MS = 3_600_000


def told_from_now(quorum: InProcessQuorum) -> Callable[[], list[int]]:
    """Return a function that reads how late each heartbeat is that was published meanwhile."""
    seq = quorum.bus.last_seq()

    def late_ms() -> list[int]:
        events = [msgspec.json.decode(entry.raw) for entry in quorum.bus.read(seq, quorum.bus.last_seq())]
        return [event["late_ms"] for event in events if event["kind"] == "gateway_heartbeat"]

    return late_ms


def test_time_that_the_steady_clock_skipped_is_reported_with_the_next_heartbeat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead_ms = wall_ahead_ms = 0
    monkeypatch.setattr("brokers.gateways.shared.heartbeats.now_ms", lambda: now_ms() + wall_ahead_ms)
    monkeypatch.setattr("bus.clock.steady_ms", lambda: steady_ms() + ahead_ms)
    quorum = InProcessQuorum(tmp_path, gateway_heartbeat_interval_ms=50)
    try:
        late_ms = told_from_now(quorum)
        wait_until(lambda: len(late_ms()) >= 2, "two heartbeats")
        wall_ahead_ms = SUSPENDED_MS
        wait_until(lambda: len(late_ms()) >= 4, "two heartbeats after the wall clock was set")
        assert max(late_ms()) < SUSPENDED_MS / 2
        ahead_ms = SUSPENDED_MS
        wait_until(lambda: max(late_ms()) > 0.99 * SUSPENDED_MS, "a heartbeat that tells it")
        count = len(late_ms())
        wait_until(lambda: len(late_ms()) >= count + 2, "two more")
        assert sum(late > SUSPENDED_MS / 2 for late in late_ms()) == 1
    finally:
        quorum.stop()


def test_a_delay_that_also_held_up_the_reading_of_decisions_is_told_once_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead_ms = 0
    for clock in ("bus.clock.steady_ms", "brokers.gateways.shared.read_watch.steady_ms"):
        monkeypatch.setattr(clock, lambda: steady_ms() + ahead_ms)
    quorum = InProcessQuorum(tmp_path, gateway_heartbeat_interval_ms=50)
    reads, goes_on = threading.Event(), threading.Event()
    bus = quorum.gateways[100].bus
    changed = bus.changed

    def held_up() -> bool:
        reads.set()
        assert goes_on.wait(TIMEOUT_S)
        return changed()

    try:
        monkeypatch.setattr(bus, "changed", held_up)
        assert reads.wait(TIMEOUT_S)
        late_ms = told_from_now(quorum)
        with capture_logs() as lines:
            ahead_ms = SUSPENDED_MS
            wait_until(
                lambda: "no heartbeats, so that another gateway leads" in [line["event"] for line in lines],
                "a heartbeat to be left out",
            )
        goes_on.set()
        wait_until(lambda: max(late_ms(), default=0) > 0.99 * SUSPENDED_MS, "a heartbeat that tells it")
    finally:
        goes_on.set()
        quorum.stop()
