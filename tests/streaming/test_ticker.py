"""Ticks on the bus: frequent while log ends arrive, rare when idle, and only from the current controller."""

import itertools
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from bus.clock import now_ms, steady_ms
from bus.embedded import EmbeddedBus
from bus.interface import Claim
from state.event_text import decode
from state.events import SessionsExtended, Tick
from streaming.engine_clock import EngineClock
from streaming.ticker import Ticker
from tests.support.engine import encoded
from tests.support.lock_holder import Holder
from tests.support.waiting import TIMEOUT_S, wait_until

BUSY_MS, IDLE_MS = 10, 300_000
HOUR_MS = 3_600_000


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[EmbeddedBus]:
    bus = EmbeddedBus(tmp_path / "bus.db")
    bus.claim("job", {}, 1)
    yield bus
    bus.close()


def ticker_of(bus: EmbeddedBus, idle_ms: int = IDLE_MS) -> Ticker:
    return Ticker(bus, Claim(1, 1, 1), EngineClock(), BUSY_MS, idle_ms)


def ticks(bus: EmbeddedBus) -> list[Tick]:
    events = [decode(entry.raw) for entry in bus.read(0, bus.last_seq())]
    return [event for event in events if isinstance(event, Tick)]


def stop(ticker: Ticker) -> None:
    ticker.stop()
    ticker.join(TIMEOUT_S)
    assert not ticker.is_alive()


def test_a_sleep_is_seen_before_and_after_the_thread_wakes_up(
    bus: EmbeddedBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead_ms = 0
    monkeypatch.setattr("streaming.ticker.steady_ms", lambda: steady_ms() + ahead_ms)
    ticker = ticker_of(bus)
    assert ticker.longest_sleep().lasted_ms < HOUR_MS
    ahead_ms = HOUR_MS
    assert ticker.longest_sleep().lasted_ms >= HOUR_MS
    ticker.start()
    wait_until(lambda: ticker.longest_sleep().lasted_ms < HOUR_MS, "the thread woke up, and its sleep was asked for")
    stop(ticker)


def test_an_idle_bus_gets_a_tick_at_each_idle_interval(bus: EmbeddedBus) -> None:
    ticker = ticker_of(bus, 40)
    ticker.start()
    wait_until(lambda: len(ticks(bus)) >= 4, "four ticks")
    stop(ticker)
    times = [tick.time_ms for tick in ticks(bus)]
    # The engine's clock approaches the wall clock by at most a tenth of the time that passes.
    assert all(after - before >= 35 for before, after in itertools.pairwise(times))
    assert {tick.controller_epoch for tick in ticks(bus)} == {1}


def test_offsets_bring_the_next_tick_forward_and_heartbeats_do_not(bus: EmbeddedBus) -> None:
    ticker = ticker_of(bus)
    ticker.start()
    wait_until(lambda: len(ticks(bus)) == 1, "the first tick")
    bus.publish([encoded("broker_heartbeat", broker=1)])
    time.sleep(20 * BUSY_MS / 1000)
    assert len(ticks(bus)) == 1
    bus.publish([encoded("log_end_offset", topic="t", partition=0)])
    wait_until(lambda: len(ticks(bus)) == 2, "a tick after the offset")
    stop(ticker)


def test_the_ticker_ends_when_another_job_has_claimed(bus: EmbeddedBus) -> None:
    ticker = ticker_of(bus, BUSY_MS)
    ticker.start()
    bus.claim("other", {}, 2)
    ticker.join(TIMEOUT_S)
    assert not ticker.is_alive()
    assert ticker.error is None


def extensions(bus: EmbeddedBus) -> list[int]:
    events = [decode(entry.raw) for entry in bus.read(1, bus.last_seq())]
    return [event.by_ms for event in events if isinstance(event, SessionsExtended)]


def test_a_delayed_ticker_reports_the_delay(bus: EmbeddedBus, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = itertools.count()
    claimed_epoch = bus.claimed_epoch

    def slow_once() -> int:
        if next(asked) == 2:
            time.sleep(0.6)
        return claimed_epoch()

    monkeypatch.setattr(bus, "claimed_epoch", slow_once)
    ticker = ticker_of(bus, BUSY_MS)
    ticker.start()
    wait_until(lambda: len(extensions(bus)) >= 1, "an extension")
    stop(ticker)
    assert extensions(bus)[0] >= 590


@pytest.mark.parametrize("set_by_ms", [HOUR_MS, -60_000, -HOUR_MS])
def test_a_set_wall_clock_neither_stops_ticks_nor_makes_them_leap(
    bus: EmbeddedBus, monkeypatch: pytest.MonkeyPatch, set_by_ms: int
) -> None:
    by_ms = 0
    monkeypatch.setattr("streaming.engine_clock.now_ms", lambda: now_ms() + by_ms)
    ticker = ticker_of(bus, 20)
    ticker.start()
    wait_until(lambda: len(ticks(bus)) >= 1, "the first tick")
    by_ms = set_by_ms
    wait_until(lambda: len(ticks(bus)) >= 5, "ticks after it")
    stop(ticker)
    times = [tick.time_ms for tick in ticks(bus)]
    assert times == sorted(set(times))
    assert times[-1] - times[0] < 30_000
    assert extensions(bus) in ([], [late for late in extensions(bus) if late < 30_000])


def test_ticks_continue_from_the_rules_clock(bus: EmbeddedBus) -> None:
    ticker = ticker_of(bus, 20)
    ticker.start()
    wait_until(lambda: len(ticks(bus)) >= 3, "ticks")
    first, clock_ms = bus.read(0, 99)[1], ticks(bus)[0].time_ms + HOUR_MS
    for _ in range(3):
        # A reading from before the shift shifts the clock no further.
        ticker.decided(first.seq, clock_ms)
    count = len(ticks(bus))
    wait_until(lambda: len(ticks(bus)) > count + 1, "ticks after it")
    stop(ticker)
    assert clock_ms < ticks(bus)[-1].time_ms < clock_ms + HOUR_MS


def test_the_tickers_error_is_what_ended_it(bus: EmbeddedBus, monkeypatch: pytest.MonkeyPatch) -> None:
    def timed_out(after: int) -> bool:
        raise TimeoutError("no answer")

    monkeypatch.setattr(bus, "log_ends_came", timed_out)
    ticker = ticker_of(bus)
    ticker.start()
    ticker.join(TIMEOUT_S)
    assert isinstance(ticker.error, TimeoutError)


def test_a_bus_that_somebody_has_locked_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isrflow.sqlite.bus_file.LOCK_TOLD_S", 0.02)
    bus = EmbeddedBus(tmp_path / "bus.db", lock_timeout_s=120)
    bus.claim("job", {}, 1)
    holder = Holder(bus.path)
    ticker = ticker_of(bus, BUSY_MS)
    with capture_logs() as said:
        ticker.start()
        wait_until(lambda: len(said) > 3, "word that it is locked")
        assert ticks(bus) == []
        holder.let_go()
        wait_until(lambda: len(ticks(bus)) > 1, "two ticks")
    ticker.stop()
    ticker.join(TIMEOUT_S)
    assert ticker.error is None
    bus.close()
