"""The engine's clock on machines whose clocks are set, drift, stand still or are suspended."""

import pytest

from streaming import engine_clock
from streaming.engine_clock import EngineClock

HOUR_MS = 3_600_000


class Machine:
    """A machine's clocks; the wall clock may run faster or slower than time."""

    def __init__(self) -> None:
        self.steady_ms = 5_000.0
        self.wall_ms = 1_000_000.0
        self.rate = 1.0

    def pass_time(self, ms: float) -> None:
        self.steady_ms += ms
        self.wall_ms += ms * self.rate


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine()
    monkeypatch.setattr(engine_clock, "now_ms", lambda: int(machine.wall_ms))
    monkeypatch.setattr(engine_clock, "steady_ms", lambda: int(machine.steady_ms))
    return machine


def after(machine: Machine, clock: EngineClock, ms: int, each_ms: int = 100) -> list[int]:
    """Read the clock every ``each_ms`` until ``ms`` have passed."""
    read = []
    for _ in range(ms // each_ms):
        machine.pass_time(each_ms)
        read.append(clock.read_ms())
    return read


def test_the_engine_clock_follows_a_steady_wall_clock(machine: Machine) -> None:
    clock = EngineClock()
    assert clock.read_ms() == 1_000_000
    assert after(machine, clock, 10_000)[-1] == 1_010_000
    assert clock.steps == 0


@pytest.mark.parametrize("by_ms", [HOUR_MS, -HOUR_MS, 10_000, -10_000, 1_000, -1_000])
def test_a_step_of_the_wall_clock_is_reported_and_approached_slowly(machine: Machine, by_ms: int) -> None:
    clock = EngineClock()
    machine.wall_ms += by_ms
    times = after(machine, clock, 20_000)
    assert clock.steps == 1
    pace = [later - earlier for earlier, later in zip([1_000_000, *times], times, strict=False)]
    assert all(89 <= passed <= 111 for passed in pace), "no time is left out, and none goes back"
    skew_ms = machine.wall_ms - times[-1]
    expected_ms = max(0, abs(by_ms) - 2_000)
    assert abs(abs(skew_ms) - expected_ms) <= 1


@pytest.mark.parametrize("rate", [0.95, 1.05])
def test_a_wall_clock_that_drifts_is_followed(machine: Machine, rate: float) -> None:
    clock = EngineClock()
    machine.rate = rate
    assert abs(after(machine, clock, 600_000)[-1] - machine.wall_ms) <= 1
    assert clock.steps == 0


def test_time_passes_while_the_process_stands_still(machine: Machine) -> None:
    clock = EngineClock()
    machine.pass_time(HOUR_MS)
    assert clock.read_ms() == 1_000_000 + HOUR_MS
    assert clock.steps == 0


@pytest.mark.parametrize("by_ms", [5_000, -5_000])
def test_the_engine_clock_continues_from_the_rules_clock_once(machine: Machine, by_ms: int) -> None:
    clock = EngineClock()
    for seq in (1, 2, 3):
        clock.note_tick(seq, clock.read_ms())
        machine.pass_time(100)
    clock.decided(1, 1_000_000 + by_ms)
    # A reading from before the shift shifts the clock no further.
    clock.decided(3, 1_000_200 + by_ms)
    expected_ms = 1_000_300 + by_ms
    assert abs(clock.read_ms() - expected_ms) <= 30
    clock.note_tick(4, clock.read_ms())
    clock.decided(9, clock.read_ms())
    assert abs(clock.read_ms() - expected_ms) <= 30
