"""Time on the bus: quick while offsets come, slow when idle, and only by whoever holds the controller."""

import itertools
import time
from pathlib import Path

import msgspec
import pytest
from structlog.testing import capture_logs

from isrflow.bus.embedded import EmbeddedBus, now_ms
from isrflow.streaming.ticker import Ticker
from tests.support.engine import encoded, wait_until
from tests.support.lock_holder import Holder

BUSY_MS, IDLE_MS = 10, 300_000


@pytest.fixture
def bus(tmp_path: Path):
    bus = EmbeddedBus(tmp_path / "bus.db")
    bus.claim("job", {}, 1)
    yield bus
    bus.close()


def ticks(bus: EmbeddedBus) -> int:
    return sum(msgspec.json.decode(entry.raw)["kind"] == "tick" for entry in bus.read(0, bus.last_seq()))


def test_an_idle_bus_gets_a_tick_at_each_idle_interval(bus: EmbeddedBus) -> None:
    ticker = Ticker(bus, 1, BUSY_MS, 40)
    ticker.start()
    wait_until(lambda: ticks(bus) >= 4, 30, "four ticks")
    ticker.stop()
    ticker.join(10)
    assert not ticker.is_alive()
    times = [msgspec.json.decode(entry.raw)["time_ms"] for entry in bus.read(1, bus.last_seq())]
    assert all(after - before >= 40 for before, after in itertools.pairwise(times))


def test_offsets_bring_the_next_tick_forward_and_heartbeats_do_not(bus: EmbeddedBus) -> None:
    ticker = Ticker(bus, 1, BUSY_MS, IDLE_MS)
    ticker.start()
    wait_until(lambda: ticks(bus) == 1, 30, "the first tick")
    bus.publish([encoded("broker_heartbeat", broker=1)])
    time.sleep(20 * BUSY_MS / 1000)
    assert ticks(bus) == 1
    bus.publish([encoded("log_end_offset", topic="t", partition=0)])
    wait_until(lambda: ticks(bus) == 2, 30, "a tick after the offset")
    ticker.stop()
    ticker.join(10)


def test_it_ends_when_another_job_has_claimed(bus: EmbeddedBus) -> None:
    ticker = Ticker(bus, 1, BUSY_MS, BUSY_MS)
    ticker.start()
    bus.claim("other", {}, 2)
    ticker.join(10)
    assert not ticker.is_alive()
    assert ticker.error is None


def extensions(bus: EmbeddedBus) -> list[int]:
    events = [msgspec.json.decode(entry.raw) for entry in bus.read(1, bus.last_seq())]
    return [event["by_ms"] for event in events if event["kind"] == "sessions_extended"]


def test_one_that_was_held_up_says_for_how_long(bus: EmbeddedBus, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = itertools.count()
    claimed_epoch = bus.claimed_epoch

    def slow_once() -> int:
        if next(asked) == 2:
            time.sleep(0.6)
        return claimed_epoch()

    monkeypatch.setattr(bus, "claimed_epoch", slow_once)
    ticker = Ticker(bus, 1, BUSY_MS, BUSY_MS)
    ticker.start()
    wait_until(lambda: len(extensions(bus)) >= 1, 30, "an extension")
    ticker.stop()
    ticker.join(10)
    assert extensions(bus)[0] >= 590


def test_a_machine_that_was_suspended_is_told_by_the_wall_clock(
    bus: EmbeddedBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead_ms = 0
    monkeypatch.setattr("isrflow.streaming.ticker.now_ms", lambda: now_ms() + ahead_ms)
    ticker = Ticker(bus, 1, BUSY_MS, IDLE_MS)
    ticker.start()
    wait_until(lambda: ticks(bus) == 1, 30, "the first tick")
    ahead_ms = 3_600_000
    wait_until(lambda: ticks(bus) == 2, 30, "a tick after it")
    assert 3_590_000 < extensions(bus)[0] < 3_700_000
    # A clock that is set back holds up nobody.
    ahead_ms = 0
    bus.publish([encoded("log_end_offset", topic="t", partition=0)])
    wait_until(lambda: ticks(bus) == 3, 30, "a tick after that")
    ticker.stop()
    ticker.join(10)
    assert len(extensions(bus)) == 1


def test_whatever_ends_it_is_its_error(bus: EmbeddedBus, monkeypatch: pytest.MonkeyPatch) -> None:
    def timed_out(after: int) -> bool:
        raise TimeoutError("no answer")

    monkeypatch.setattr(bus, "offsets_came", timed_out)
    ticker = Ticker(bus, 1, BUSY_MS, IDLE_MS)
    ticker.start()
    ticker.join(10)
    assert isinstance(ticker.error, TimeoutError)


def test_a_bus_that_somebody_has_locked_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isrflow.bus.bus_file.LOCK_TOLD_S", 0.02)
    bus = EmbeddedBus(tmp_path / "bus.db", lock_timeout_s=120)
    bus.claim("job", {}, 1)
    holder = Holder(bus.path)
    ticker = Ticker(bus, 1, BUSY_MS, BUSY_MS)
    with capture_logs() as said:
        ticker.start()
        wait_until(lambda: len(said) > 3, 30, "word that it is locked")
        assert ticks(bus) == 0
        holder.let_go()
        wait_until(lambda: ticks(bus) > 1, 30, "two ticks")
    ticker.stop()
    ticker.join(10)
    assert ticker.error is None
    bus.close()
