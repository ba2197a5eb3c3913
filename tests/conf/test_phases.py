"""The phases of a start."""

import structlog

from conf.phases import Phases


def test_each_phase_is_told_with_how_long_it_lasts() -> None:
    now_s, told = 100.0, list[str]()
    phases = Phases(told.append, lambda: now_s)
    assert phases.told == ""
    with structlog.testing.capture_logs() as logged:
        phases.begin("reaching the bus")
        now_s = 102.0
        phases.begin("reading the state")
        now_s = 107.5
        assert phases.told == "it has been reading the state for 6 s"
        phases.end()
        phases.end()
    assert phases.told == ""
    assert told == ["reaching the bus", "reading the state", ""]
    assert [line.get("phase") for line in logged] == ["reaching the bus", "reading the state", None]
    assert logged[-1]["seconds"] == {"reaching the bus": 2.0, "reading the state": 5.5}


def test_a_second_start_is_told_by_itself() -> None:
    now_s = 0.0
    phases = Phases(clock_s=lambda: now_s)
    for _ in range(2):
        phases.begin("taking over")
        now_s += 1
        with structlog.testing.capture_logs() as logged:
            phases.end()
        assert logged[-1]["seconds"] == {"taking over": 1.0}
