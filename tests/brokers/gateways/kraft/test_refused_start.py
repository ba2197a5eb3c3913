"""A gateway that starts while its clock is far ahead: its start is refused, and counts once the clock is right."""

from pathlib import Path

import msgspec
import pytest

from bus.clock import now_ms
from state.decisions import Rejected, decode
from tests.support.gateway_in_process import InProcessQuorum
from tests.support.waiting import wait_until

HOUR_MS = 3_600_000
NOW = "brokers.gateways.shared.heartbeats.now_ms"


def refused(quorum: InProcessQuorum, kind: str) -> int:
    """Count the events of a kind that the engine has rejected."""
    decisions = (decode(one.body) for one in quorum.bus.decisions((0, -1), 100_000))
    events = [msgspec.json.decode(one.raw) for one in decisions if isinstance(one, Rejected)]
    return sum(event["kind"] == kind for event in events)


def knows_that_it_counts(quorum: InProcessQuorum) -> bool:
    """Return whether the gateway asked twice in a row without another start: by then it has read that it counts."""
    events = [msgspec.json.decode(entry.raw) for entry in quorum.bus.read(0, quorum.bus.last_seq())]
    told = [event for event in events if event["kind"] == "gateway_started" or event.get("request_id")]
    return [event["kind"] for event in told[-2:]] == ["gateway_heartbeat"] * 2


def test_a_gateway_leads_once_its_clock_is_right(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ahead_ms = HOUR_MS
    monkeypatch.setattr(NOW, lambda: now_ms() + ahead_ms)
    monkeypatch.setattr("brokers.gateways.kraft.gateway.ASKING_EVERY", 2)
    quorum = InProcessQuorum(tmp_path, gateway_heartbeat_interval_ms=20)
    try:
        wait_until(lambda: refused(quorum, "gateway_started") >= 2, "the start to be refused again")
        assert quorum.state.voter != 100
        ahead_ms = 0
        wait_until(lambda: quorum.state.voter == 100, "the gateway to lead")
        # It sends its start until it has read the answer to a heartbeat.
        wait_until(lambda: knows_that_it_counts(quorum), "the gateway to know that it counts")
        # From then on it does not start again, whatever its clock says.
        epoch, starts = quorum.state.quorum_epoch, refused(quorum, "gateway_started")
        ahead_ms = HOUR_MS
        beats = refused(quorum, "gateway_heartbeat")
        wait_until(lambda: refused(quorum, "gateway_heartbeat") > beats + 10, "heartbeats to be refused")
        assert refused(quorum, "gateway_started") == starts
        ahead_ms = 0
        assert not quorum.gateways[100].has_ended
        assert quorum.state.voter == 100
        assert quorum.state.quorum_epoch >= epoch
    finally:
        quorum.stop()
