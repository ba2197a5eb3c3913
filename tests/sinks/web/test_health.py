"""The answers of /healthz, /readyz and /standbyz about an engine."""

from typing import Any

import pytest

from sinks.metric_snapshot import MetricSnapshot
from sinks.web.health import (
    CLOCK_OFF_MS_MAX,
    COMMIT_AGE_MS_MAX,
    STUCK_AFTER_MS,
    availability,
    liveness,
    readiness,
)

T_MS = 1_000_000
DECIDING = MetricSnapshot(
    active=True,
    takeovers=1,
    controller_epoch=3,
    took_over_steady_ms=T_MS - 60_000,
    last_commit_steady_ms=T_MS - 400,
    last_batch_ms=50_000,
    last_engine_ms=50_000,
    bus_clock_off_ms=0,
)


WAITING = MetricSnapshot(standby=True, loaded=True, looked_steady_ms=T_MS - 100)


def with_(**changes: Any) -> MetricSnapshot:
    return MetricSnapshot(**{**{name: getattr(DECIDING, name) for name in DECIDING.__struct_fields__}, **changes})


def test_an_engine_that_decides_is_ready_and_healthy() -> None:
    assert readiness(DECIDING, T_MS).why == liveness(DECIDING, T_MS).why == ()
    assert readiness(DECIDING, T_MS).last_commit_age_ms == 400


@pytest.mark.parametrize(
    ("snapshot", "why"),
    [
        (MetricSnapshot(), "it does not decide: starting"),
        (MetricSnapshot(standby=True), "it does not decide: standby"),
        (with_(active=False), "it does not decide: stopping"),
        (with_(last_commit_steady_ms=None), "it has not committed anything yet"),
        (with_(last_commit_steady_ms=T_MS - COMMIT_AGE_MS_MAX - 1), "its last commit is 10 s ago"),
        (with_(last_engine_ms=65_000), "the engine's clock is 15 s ahead of its machine's"),
        (with_(bus_clock_off_ms=-15_000), "the engine's clock is 15 s behind the bus's"),
        (with_(blocked_ms=3_000, blocker="it"), "for 3 s events could not be decided because of it"),
    ],
)
def test_an_engine_is_not_ready_and_says_why(snapshot: MetricSnapshot, why: str) -> None:
    found = readiness(snapshot, T_MS)
    assert (found.ok, found.why) == (False, (why,))
    assert liveness(snapshot, T_MS).ok


def test_an_engine_that_starts_says_what_it_does_and_for_how_long() -> None:
    starting = MetricSnapshot(phase="warming Spark up", phase_steady_ms=T_MS - 3_000)
    assert readiness(starting, T_MS).why == ("it does not decide: starting", "it has been warming Spark up for 3 s")
    assert availability(starting, T_MS).why[1:] == readiness(starting, T_MS).why[1:]
    assert liveness(starting, T_MS).why == ()


def test_an_engine_is_available_that_decides_or_could_at_once() -> None:
    assert availability(DECIDING, T_MS).ok
    assert availability(WAITING, T_MS).ok
    assert availability(with_(last_commit_steady_ms=T_MS - COMMIT_AGE_MS_MAX), T_MS).ok
    # A clock that is off is no reason to wait for another engine.
    assert availability(with_(bus_clock_off_ms=-15_000), T_MS).ok


@pytest.mark.parametrize(
    ("snapshot", "why"),
    [
        (MetricSnapshot(), "it neither decides nor has loaded everything: starting"),
        (MetricSnapshot(standby=True), "it neither decides nor has loaded everything: standby"),
        (with_(active=False, loaded=True), "it neither decides nor has loaded everything: stopping"),
        (with_(last_commit_steady_ms=None), "it has not committed anything yet"),
        (with_(last_commit_steady_ms=T_MS - 31_000), "its last commit is 31 s ago"),
        (
            MetricSnapshot(standby=True, loaded=True, looked_steady_ms=T_MS - 31_000),
            "it stands by, and has not looked whether it is its turn for 31 s",
        ),
    ],
)
def test_an_engine_is_not_available_and_says_why(snapshot: MetricSnapshot, why: str) -> None:
    assert availability(snapshot, T_MS).why == (why,)


def test_limits_are_still_allowed() -> None:
    assert readiness(with_(last_commit_steady_ms=T_MS - COMMIT_AGE_MS_MAX), T_MS).ok
    assert readiness(with_(last_engine_ms=50_000 + CLOCK_OFF_MS_MAX), T_MS).ok


def test_an_engine_that_should_decide_and_does_not_is_not_worth_keeping() -> None:
    stuck = with_(last_commit_steady_ms=T_MS - STUCK_AFTER_MS - 1, took_over_steady_ms=0)
    assert liveness(stuck, T_MS).why == ("it should decide, and has not committed for 300 s",)
    assert liveness(with_(last_commit_steady_ms=None, took_over_steady_ms=T_MS - 5), T_MS).ok


def test_a_standby_that_could_not_take_over_is_not_worth_keeping() -> None:
    assert liveness(WAITING, T_MS + STUCK_AFTER_MS - 100).ok
    stuck = liveness(WAITING, T_MS + STUCK_AFTER_MS + 1)
    assert stuck.why == ("it stands by, and has not looked whether it is its turn for 300 s",)


def test_an_engine_is_not_restarted_because_of_a_strangers_transaction() -> None:
    stuck = with_(last_commit_steady_ms=T_MS - STUCK_AFTER_MS - 1, took_over_steady_ms=0)
    # The engine looks every second.
    blocked = with_(last_commit_steady_ms=T_MS - 900_000, took_over_steady_ms=0, last_blocked_steady_ms=T_MS - 1_000)
    assert not liveness(stuck, T_MS).ok
    assert liveness(blocked, T_MS).ok
    assert not liveness(blocked, T_MS + STUCK_AFTER_MS).ok, "it has ended, and the engine still decides nothing"
