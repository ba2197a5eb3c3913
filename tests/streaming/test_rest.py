"""Which ticks of an idle engine start no batch."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bus.embedded import EmbeddedBus
from streaming import rest
from streaming.rest import Rest
from tests.support.decided_bus import DecidedBus
from tests.support.engine import encoded

NOW_MS = 1_000_000
SESSION_MS = 9_000


@pytest.fixture
def decided(tmp_path: Path) -> Iterator[DecidedBus]:
    """A bus on which broker 1 is active, and was last heard at ``NOW_MS``."""
    decided = DecidedBus(tmp_path / "bus.db")
    events = (
        encoded("controller_started", controller_id="c", controller_epoch=1, time_ms=NOW_MS),
        encoded("broker_register", broker=1, incarnation="i", time_ms=NOW_MS),
        encoded("broker_heartbeat", time_ms=NOW_MS, **BEAT),
    )
    decided.take(events)
    yield decided
    decided.close()


BEAT = {"broker": 1, "broker_epoch": 2, "want_fence": False, "want_shutdown": False}


def rested(decided: DecidedBus) -> Rest:
    made = Rest(decided.bus)
    made.decided(decided.bus.last_seq(), [decided.state.cluster])
    return made


def fence(decided: DecidedBus) -> None:
    decided.take([encoded("broker_heartbeat", time_ms=NOW_MS, **(BEAT | {"want_fence": True}))])


def test_ticks_wait_until_something_is_due(decided: DecidedBus) -> None:
    at_rest = rested(decided)
    # A new controller looks at the balance of leaders after five seconds.
    assert at_rest.may_wait(NOW_MS + 500)
    assert at_rest.may_wait(NOW_MS + 4_999)
    assert not at_rest.may_wait(NOW_MS + 5_000)


def test_a_session_ends_at_the_tick_at_which_it_is_over(decided: DecidedBus) -> None:
    decided.take([encoded("tick", controller_epoch=1, time_ms=NOW_MS + after_ms) for after_ms in (0, 5_000)])
    at_rest = rested(decided)
    assert at_rest.may_wait(NOW_MS + SESSION_MS - 1)
    assert not at_rest.may_wait(NOW_MS + SESSION_MS)


def test_a_tick_that_waited_for_long_enough_starts_a_batch(
    decided: DecidedBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([0, 0, 1_999, 2_000, 2_001])
    monkeypatch.setattr(rest, "steady_ms", lambda: next(clock))
    at_rest = rested(decided)
    assert [at_rest.may_wait(NOW_MS + 1) for _ in range(4)] == [True, True, False, True]


def test_heartbeats_of_brokers_that_stay_as_they_are_wait_too(decided: DecidedBus) -> None:
    at_rest = rested(decided)
    decided.bus.publish([encoded("broker_heartbeat", time_ms=NOW_MS, **BEAT)] * 3)
    assert at_rest.may_wait(NOW_MS + 1)


@pytest.mark.parametrize(
    "change",
    [{"want_fence": True}, {"broker": 2}, {"broker_epoch": 7}, {"request_id": "q"}, {"kind": "log_end_offset"}, {}],
    ids=str,
)
def test_an_event_that_may_change_something_starts_a_batch_at_the_next_tick(
    decided: DecidedBus, change: dict[str, object]
) -> None:
    if not change:
        # The broker is fenced, and wants to serve again.
        fence(decided)
    at_rest = rested(decided)
    fields = BEAT | {"time_ms": NOW_MS} | change
    decided.bus.publish([encoded(str(fields.pop("kind", "broker_heartbeat")), **fields)])
    assert not at_rest.may_wait(NOW_MS + 1)
    assert at_rest.may_wait(NOW_MS + 2)


@pytest.mark.parametrize(("bound", "most"), [("EVENTS_READ_MAX", 3), ("BYTES_READ_MAX", 300)])
def test_many_new_events_are_not_looked_at(
    decided: DecidedBus, monkeypatch: pytest.MonkeyPatch, bound: str, most: int
) -> None:
    monkeypatch.setattr(rest, bound, most)
    at_rest = rested(decided)
    decided.bus.publish([encoded("broker_heartbeat", time_ms=NOW_MS, **BEAT)] * 4)
    assert not at_rest.may_wait(NOW_MS + 1)


def test_an_engine_that_has_decided_nothing_yet_does_not_rest(decided: DecidedBus) -> None:
    assert not Rest(decided.bus).may_wait(NOW_MS)


def test_a_deferrable_tick_starts_no_batch(decided: DecidedBus) -> None:
    bus: EmbeddedBus = decided.bus
    after = bus.last_seq()
    tick = encoded("tick", controller_epoch=1, time_ms=NOW_MS + 1)
    bus.publish_own([tick], deferrable=True)
    assert bus.batch_end(after, 10, defer=True) == after
    last = bus.publish_own([tick])
    assert bus.batch_end(after, 10, defer=True) == last


def test_a_fenced_broker_that_is_ready_to_serve_wants_a_tick_once(decided: DecidedBus) -> None:
    fence(decided)
    at_rest = rested(decided)
    assert not at_rest.tick_is_wanted()
    decided.bus.publish([encoded("broker_heartbeat", time_ms=NOW_MS, **BEAT)])
    assert at_rest.tick_is_wanted()
    assert not at_rest.tick_is_wanted()
    # That tick does not wait.
    assert not at_rest.may_wait(NOW_MS + 1)


@pytest.mark.parametrize("change", [{"want_fence": True}, {"broker": 2}, {"broker_epoch": 7}], ids=str)
def test_no_other_heartbeat_wants_a_tick(decided: DecidedBus, change: dict[str, object]) -> None:
    fence(decided)
    at_rest = rested(decided)
    decided.bus.publish([encoded("broker_heartbeat", **(BEAT | {"time_ms": NOW_MS} | change))])
    assert not at_rest.tick_is_wanted()


def test_no_heartbeat_is_read_while_all_brokers_are_active(
    decided: DecidedBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_rest = rested(decided)
    decided.bus.publish([encoded("broker_heartbeat", time_ms=NOW_MS, **BEAT)])
    monkeypatch.setattr(decided.bus, "recorded", None)
    assert not at_rest.tick_is_wanted()


def test_a_heartbeat_wants_no_tick_while_a_batch_is_under_way_and_is_looked_at_after_it(decided: DecidedBus) -> None:
    fence(decided)
    at_rest = rested(decided)
    tick = decided.bus.publish_own([encoded("tick", controller_epoch=1, time_ms=NOW_MS + 1)])
    decided.bus.publish([encoded("broker_heartbeat", time_ms=NOW_MS, **BEAT)])
    assert not at_rest.tick_is_wanted()
    at_rest.decided(tick, [decided.state.cluster])
    assert at_rest.tick_is_wanted()
