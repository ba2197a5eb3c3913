"""When a standby takes over, seen from its bus alone, without Spark."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from bus.embedded import EmbeddedBus
from bus.interface import OvertakenError, Page
from state.cluster import Cluster
from state.events import Tick
from state.level import FIRST_LEVEL, NEWEST_LEVEL
from state.shard_outcome import CLUSTER_PAGE
from state.stored.codec import LevelError, encode_cluster
from streaming import level_watch, standby
from streaming.level_watch import LevelWatch
from streaming.standby import ActiveWatch, claim_in_turn, wait_for_turn

TIMEOUT_MS = 2_000
EVENT = b'{"kind":"broker_heartbeat","time_ms":1,"broker":1,"broker_epoch":1}'


class Clock:
    """The standby's steady clock, which a test moves."""

    def __init__(self) -> None:
        self.ms = 0

    def __call__(self) -> int:
        return self.ms


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(standby, "steady_ms", clock)
    monkeypatch.setattr("bus.clock.steady_ms", clock)
    return clock


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[EmbeddedBus]:
    bus = EmbeddedBus(tmp_path / "bus.db")
    bus.claim("active", {}, 1)
    yield bus
    bus.close()


def tick(bus: EmbeddedBus) -> None:
    bus.publish_own([msgspec.json.encode(Tick(time_ms=1, controller_epoch=1))])


def looked(watch: ActiveWatch, clock: Clock, times: int) -> int:
    """Look at the bus as often as a standby does, and return the silence that it sees last."""
    silent_ms = 0
    for _ in range(times):
        clock.ms += standby.LOOK_INTERVAL_MS
        silent_ms = watch.silent_ms()
    return silent_ms


def test_ticks_commits_and_claims_are_signs_of_life_and_events_of_brokers_are_not(
    bus: EmbeddedBus, clock: Clock
) -> None:
    watch = ActiveWatch(bus)
    assert looked(watch, clock, 10) == 1_000
    tick(bus)
    assert looked(watch, clock, 1) == 0
    bus.publish([EVENT])
    assert looked(watch, clock, 10) == 1_000
    bus.commit(1, 2, [], [])
    assert looked(watch, clock, 5) == 400
    bus.claim("successor", {}, 2)
    assert (looked(watch, clock, 5), watch.epoch) == (400, 2)


def test_a_standstill_of_the_standby_is_no_silence(bus: EmbeddedBus, clock: Clock) -> None:
    watch = ActiveWatch(bus)
    assert looked(watch, clock, 10) == 1_000
    clock.ms += 3_600_000
    assert looked(watch, clock, 1) == 1_100
    assert looked(watch, clock, 5) == 1_600


def test_the_start_of_the_standby_counts_as_silence(bus: EmbeddedBus, clock: Clock) -> None:
    watch = ActiveWatch(bus)
    clock.ms += 10_000
    assert watch.silent_ms() == 10_000


def unknown(epoch: int) -> bool:
    """Know of no job that it died."""
    return False


def turn(bus: EmbeddedBus, clock: Clock, is_dead: Callable[[int], bool] = unknown) -> tuple[int | None, int]:
    """Return the epoch that a standby would succeed, and how long it waited."""
    before_ms = clock.ms

    def passes() -> None:
        clock.ms += standby.LOOK_INTERVAL_MS

    epoch = wait_for_turn(ActiveWatch(bus), TIMEOUT_MS, threading.Event(), passes, is_dead)
    return epoch, clock.ms - before_ms


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading.Event, "wait", lambda self, timeout=None: self.is_set())


@pytest.mark.usefixtures("no_waiting")
def test_a_standby_takes_over_after_the_timeout_and_at_once_after_a_resignation(bus: EmbeddedBus, clock: Clock) -> None:
    assert turn(bus, clock) == (1, TIMEOUT_MS)
    bus.resign(1)
    assert turn(bus, clock) == (1, 0)
    bus.claim("successor", {}, 2)
    assert turn(bus, clock) == (2, TIMEOUT_MS)


@pytest.mark.usefixtures("no_waiting")
def test_a_standby_does_not_wait_for_the_silence_of_an_engine_that_has_died(bus: EmbeddedBus, clock: Clock) -> None:
    died: list[int] = []

    def is_dead(epoch: int) -> bool:
        if clock.ms >= TIMEOUT_MS // 2:
            died.append(epoch)
        return bool(died)

    assert turn(bus, clock, is_dead) == (1, TIMEOUT_MS // 2)
    assert died == [1]


@pytest.mark.usefixtures("no_waiting")
def test_a_silence_in_which_nobody_could_write_does_not_count(
    bus: EmbeddedBus, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits_ms = iter([5_000, 0])

    def await_writable() -> None:
        clock.ms += next(waits_ms)

    monkeypatch.setattr(bus, "await_writable", await_writable)
    assert turn(bus, clock) == (1, TIMEOUT_MS + 5_000 + TIMEOUT_MS)


def test_a_new_bus_has_nobody_to_wait_for(tmp_path: Path, clock: Clock) -> None:
    bus = EmbeddedBus(tmp_path / "new.db")
    assert turn(bus, clock) == (0, 0)
    bus.close()


@pytest.mark.usefixtures("no_waiting")
def test_one_of_two_standbys_that_see_the_same_silence_takes_over_and_the_other_keeps_waiting(
    bus: EmbeddedBus, clock: Clock
) -> None:
    stopping = threading.Event()
    refused: list[str] = []

    def claim(after_epoch: int) -> None:
        if not refused:
            bus.claim("faster", {}, 2, after_epoch)
        try:
            bus.claim("slower", {}, 3, after_epoch)
        except OvertakenError as error:
            refused.append(str(error))
            raise

    def passes() -> None:
        clock.ms += standby.LOOK_INTERVAL_MS
        if refused and clock.ms < 60_000:
            tick(bus)

    watch = ActiveWatch(bus)
    assert claim_in_turn(watch, TIMEOUT_MS, stopping, passes, claim, unknown)
    # As long as the faster one ticks, the slower one does not claim. It does once those ticks end.
    assert len(refused) == 1
    assert clock.ms > 60_000
    assert bus.claimed_epoch() == 3


def test_a_standby_that_is_stopped_claims_nothing(bus: EmbeddedBus) -> None:
    stopping = threading.Event()
    claimed: list[int] = []
    assert not claim_in_turn(ActiveWatch(bus), 3_600_000, stopping, stopping.set, claimed.append, unknown)
    assert claimed == []


def test_a_standby_sees_within_seconds_that_the_level_was_raised(
    bus: EmbeddedBus, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(level_watch, "steady_ms", clock)
    watch = LevelWatch(bus)

    def commit(level: int) -> None:
        seq = bus.publish([EVENT])
        bus.commit(1, seq, [], [Page(0, CLUSTER_PAGE, encode_cluster(Cluster(level=level)))])

    commit(FIRST_LEVEL)
    watch.look()
    commit(NEWEST_LEVEL + 1)
    watch.look()
    clock.ms += level_watch.INTERVAL_MS
    with pytest.raises(LevelError, match=f"the bus is at level {NEWEST_LEVEL + 1}"):
        watch.look()
