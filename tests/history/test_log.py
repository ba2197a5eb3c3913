"""The past of a bus: pages of bounded size, and the state as of every seq."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from controller_logic.replay import decide
from history import log
from history.moment import seq_of_moment, time_ms_of
from history.reach import BeyondReachError, reach_of
from history.state_at import state_at
from state.policy import Policy
from tests.support.decided_bus import DecidedBus


def event(kind: str, time_ms: int, **fields: object) -> bytes:
    return json.dumps({"kind": kind, "time_ms": time_ms, **fields}).encode()


EVENTS = [
    event("broker_register", 50, broker=1, incarnation="i"),
    event("broker_heartbeat", 60, broker=1, broker_epoch=1, want_fence=False, want_shutdown=False),
    event("create_topic", 70, topic="t", partitions=2, replication_factor=1),
    b"no event",
    event("create_topic", 80, topic="u", partitions=1, replication_factor=1),
    event("tick", 90),
    event("delete_topic", 100, topic="t"),
    event("tick", 99_000),
]
ALL = 2**62


@pytest.fixture
def decided(tmp_path: Path) -> DecidedBus:
    bus = DecidedBus(tmp_path / "bus.db")
    bus.take(EVENTS[:3])
    bus.take(EVENTS[3:])
    return bus


def test_events_come_back_as_they_were_published(decided: DecidedBus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "PAGE_EVENTS", 3)
    assert [entry.raw for entry in log.events(decided.bus, 0, ALL)] == EVENTS
    assert [entry.seq for entry in log.events(decided.bus, 2, 5)] == [3, 4, 5]
    assert [len(page) for page in log.event_pages(decided.bus, 0, ALL)] == [3, 3, 2]


def test_a_page_of_events_is_bounded_in_bytes_and_never_empty(decided: DecidedBus) -> None:
    bus = decided.bus
    sizes = [len(raw) for raw in EVENTS]
    assert len(bus.recorded(0, ALL, 100, sum(sizes[:3]))) == 3
    assert len(bus.recorded(0, ALL, 100, sum(sizes[:3]) - 1)) == 2
    assert [entry.seq for entry in bus.recorded(4, ALL, 100, 1)] == [5]
    assert bus.recorded(8, ALL, 100, 1) == []


def test_decisions_between_two_seqs_are_read_in_pages(decided: DecidedBus, monkeypatch: pytest.MonkeyPatch) -> None:
    everything = decided.bus.decisions((0, -1), 1_000)
    monkeypatch.setattr(log, "PAGE_DECISIONS", 2)
    assert list(log.decisions(decided.bus, 0, ALL)) == everything
    assert list(log.decisions(decided.bus, 2, 5)) == [one for one in everything if 2 < one.seq <= 5]


def test_the_state_as_of_each_seq_is_what_the_rules_had_then(decided: DecidedBus) -> None:
    entries = list(log.events(decided.bus, 0, ALL))
    for seq in range(len(EVENTS) + 1):
        known = [(one.seq, one.raw, one.entered_ms, one.is_claim) for one in entries[:seq]]
        assert state_at(decided.bus, seq).view() == decide(known, Policy()).view(), seq


def test_a_state_after_the_last_decided_event_is_refused(decided: DecidedBus) -> None:
    with pytest.raises(BeyondReachError, match="seq 9 is not decided yet: decisions go through seq 8"):
        state_at(decided.bus, 9)


def test_a_state_before_removed_events_is_refused_and_the_oldest_one_named(decided: DecidedBus) -> None:
    decided.trim(2)
    assert reach_of(decided.bus).state_from == 8
    with pytest.raises(
        BeyondReachError, match="seq 7 can no longer be rebuilt: the oldest one that can is that of seq 8"
    ):
        state_at(decided.bus, 7)
    assert state_at(decided.bus, 8).view()["seq"] == 8
    assert [entry.seq for entry in log.events(decided.bus, 0, ALL)] == [7, 8]


def test_a_moment_is_a_seq_or_a_time(decided: DecidedBus) -> None:
    last = list(log.events(decided.bus, 0, ALL))[-1]
    assert last.entered_ms is not None
    assert seq_of_moment(decided.bus, "5", 0) == 5
    assert seq_of_moment(decided.bus, "0ms", last.entered_ms) == last.seq
    with pytest.raises(BeyondReachError, match="no event had come by 1h: 'isrflow events"):
        seq_of_moment(decided.bus, "1h", last.entered_ms)
    decided.trim(2)
    with pytest.raises(BeyondReachError, match="no event from 1h or before is left"):
        seq_of_moment(decided.bus, "1h", last.entered_ms)


def test_nothing_is_known_of_the_future(decided: DecidedBus) -> None:
    last = list(log.events(decided.bus, 0, ALL))[-1]
    assert last.entered_ms is not None
    later = datetime.fromtimestamp(last.entered_ms / 1_000 + 3_600, UTC).isoformat()
    with pytest.raises(ValueError, match=f"'{re.escape(later)}' is in the future, of which nothing is known"):
        seq_of_moment(decided.bus, later, last.entered_ms)
    # Another clock may be a little ahead.
    assert seq_of_moment(decided.bus, later, last.entered_ms + 3_599_000) == last.seq
    # It is not the future if events have later times, because a clock was set back.
    earlier = datetime.fromtimestamp(last.entered_ms / 1_000 - 3_600, UTC).isoformat()
    with pytest.raises(BeyondReachError, match="no event had come by"):
        seq_of_moment(decided.bus, earlier, last.entered_ms - 36_000_000)


def test_a_time_is_read_in_every_form() -> None:
    assert time_ms_of("1970-01-01T00:00:01Z", 0) == 1_000
    assert time_ms_of("1970-01-01T01:00:00.250+01:00", 0) == 250
    assert time_ms_of("10m", 700_000) == time_ms_of("-600s", 700_000) == 100_000
    now_ms = time_ms_of("2026-11-22T13:40:00Z", 0)
    assert time_ms_of("13:40Z", now_ms) == now_ms
    assert time_ms_of("13:39:58Z", now_ms) == now_ms - 2_000
    assert time_ms_of("13:41Z", now_ms) == now_ms - 86_400_000 + 60_000, "that was yesterday"
    assert time_ms_of("13:40", time_ms_of("2026-11-22T13:41:00", 0)) == time_ms_of("2026-11-22T13:40:00", 0)
    with pytest.raises(ValueError, match="'25:00' is not a moment"):
        time_ms_of("25:00", now_ms)
    with pytest.raises(ValueError, match="'noon' is not a moment: expected a seq, a time such as"):
        time_ms_of("noon", 0)
