"""A late request is refused: after a standstill by a new claim, in a slow engine without one."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from bus.embedded import EmbeddedBus
from bus.interface import Claim
from controller_logic.replay import decide
from sinks.decision_log import DecisionLog
from state.cluster import Cluster
from state.policy import Policy
from streaming.deadlines import (
    BETWEEN_CLAIMS_MS,
    LATE_MS_MAX,
    SLOW_BATCH_MS,
    STANDSTILL_MS,
    Deadlines,
    LateError,
)
from streaming.engine_clock import EngineClock
from streaming.ticker import Sleep, Ticker
from tests.support.engine import decisions_of
from tests.support.operators import OperatorCluster

HOUR_MS = 3_600_000
LATE = "REQUEST_TIMED_OUT"


class Time:
    """All the clocks of this test; the bus's wall clock is 1000 s ahead of the steady one."""

    def __init__(self) -> None:
        self.steady_ms = 5_000
        self.slept_ms = HOUR_MS
        # How long ago the sleep ended.
        self.awake_ms = 0

    def slept(self) -> Sleep:
        return Sleep(self.steady_ms - self.awake_ms - self.slept_ms, self.steady_ms - self.awake_ms)

    @property
    def now_ms(self) -> int:
        return self.steady_ms + 1_000_000


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    time = Time()
    monkeypatch.setattr("streaming.deadlines.steady_ms", lambda: time.steady_ms)
    monkeypatch.setattr("isrflow.sqlite.log_file.now_ms", lambda: time.now_ms)
    return time


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[EmbeddedBus]:
    bus = EmbeddedBus(tmp_path / "bus.db")
    yield bus
    bus.close()


def begun(bus: EmbeddedBus, time: Time) -> Deadlines:
    deadlines = Deadlines(bus)
    deadlines.begin(bus.claim("job", {}, time.now_ms), time.slept)
    return deadlines


def is_too_late(deadlines: Deadlines, expires_ms: int, through: int = 9) -> bool:
    try:
        deadlines.check(through, expires_ms)
    except LateError:
        return True
    return False


def test_a_deadline_is_measured_by_the_buss_clock_from_the_claim_on(bus: EmbeddedBus, time: Time) -> None:
    deadlines = begun(bus, time)
    expires_ms = time.now_ms + 20_000
    time.steady_ms += 20_000 + LATE_MS_MAX
    assert not is_too_late(deadlines, expires_ms)
    time.steady_ms += 1
    assert is_too_late(deadlines, expires_ms)


def test_a_batch_that_is_already_on_the_bus_stays(bus: EmbeddedBus, time: Time) -> None:
    deadlines = begun(bus, time)
    bus.publish([b"event"] * 9)
    bus.commit(1, 9, [], [])
    assert not is_too_late(deadlines, time.now_ms - HOUR_MS)
    assert is_too_late(deadlines, time.now_ms - HOUR_MS, through=10)


def test_a_bus_whose_clock_was_set_forward_is_followed(bus: EmbeddedBus, time: Time) -> None:
    deadlines = begun(bus, time)
    expires_ms = time.now_ms + HOUR_MS
    deadlines.decided(Cluster(shard=0, shards=1, clock_entered_ms=expires_ms))
    assert not is_too_late(deadlines, expires_ms)
    time.steady_ms += LATE_MS_MAX + 1
    assert is_too_late(deadlines, expires_ms)
    time.steady_ms += BETWEEN_CLAIMS_MS
    # The next claim is later than any tick before it, or the clock was set back.
    deadlines.begin(Claim(2, 10, time.now_ms), time.slept)
    time.steady_ms += HOUR_MS
    assert not is_too_late(deadlines, time.now_ms)


def test_only_an_engine_that_stood_still_meanwhile_is_too_late(bus: EmbeddedBus, time: Time) -> None:
    deadlines = begun(bus, time)
    time.steady_ms += HOUR_MS
    time.slept_ms = STANDSTILL_MS - 1
    assert not is_too_late(deadlines, time.now_ms - 2_000)
    time.slept_ms = STANDSTILL_MS
    # The request was late before the engine stood still.
    assert not is_too_late(deadlines, time.now_ms - STANDSTILL_MS - LATE_MS_MAX - 1)
    assert is_too_late(deadlines, time.now_ms - 2_000)


def test_a_batch_that_takes_long_after_a_standstill_is_too_late(bus: EmbeddedBus, time: Time) -> None:
    deadlines = begun(bus, time)
    time.steady_ms += HOUR_MS
    time.slept_ms, time.awake_ms = 5_000, 60_000
    woke_ms = time.now_ms - time.awake_ms
    # The request expired before the engine stood still, or after that.
    assert not is_too_late(deadlines, woke_ms - time.slept_ms - LATE_MS_MAX - 1)
    assert not is_too_late(deadlines, woke_ms + 1)
    assert is_too_late(deadlines, woke_ms - 4_000)


def test_an_engine_that_always_seems_to_stand_still_claims_rarely(bus: EmbeddedBus, time: Time) -> None:
    deadlines = begun(bus, time)
    claims = []
    for _ in range(100):
        time.steady_ms += 20_000
        if is_too_late(deadlines, time.now_ms - 3_000):
            claims.append(time.steady_ms)
            deadlines.begin(bus.claim("job", {}, time.now_ms), time.slept)
    assert [after - before for before, after in itertools.pairwise(claims)] == [BETWEEN_CLAIMS_MS] * 3


def create_request(topic: str, time: Time, timeout_ms: int) -> bytes:
    fields = {"topic": topic, "partitions": 1, "replication_factor": 1, "timeout_ms": timeout_ms}
    return msgspec.json.encode({"kind": "create_topic", "time_ms": time.now_ms, "request_id": topic, **fields})


def registered(time: Time) -> list[bytes]:
    broker = {"time_ms": time.now_ms, "broker": 1}
    beat = {"broker_epoch": 2, "want_fence": False, "want_shutdown": False}
    events = [{"kind": "broker_register", "incarnation": "a"}, {"kind": "broker_heartbeat", **beat}]
    return [msgspec.json.encode(event | broker) for event in events]


def test_requests_during_a_standstill_are_refused_also_in_a_replay(bus: EmbeddedBus, time: Time) -> None:
    deadlines = begun(bus, time)
    bus.publish([*registered(time), create_request("late", time, 20_000), create_request("patient", time, 2 * HOUR_MS)])
    planned = bus.last_seq()
    frozen = OperatorCluster(bus)
    frozen.log = DecisionLog(bus, 1, deadlines.check)
    time.steady_ms += HOUR_MS
    with pytest.raises(LateError, match="expired 3580000 ms ago"):
        frozen.batch(bus.read(0, planned))
    assert (bus.decided_seq(), decisions_of(bus)) == (0, [])
    deadlines.begin(bus.claim("job", {}, time.now_ms), time.slept)
    again = OperatorCluster(bus)
    again.log = DecisionLog(bus, 2, deadlines.check)
    # The planned batch, and the events after it.
    again.batch(bus.read(0, planned))
    again.batch(bus.read(planned, bus.last_seq()))
    decisions = [msgspec.json.decode(body) for _, _, body in decisions_of(bus)]
    answers = {one["request_id"]: one["error"] for one in decisions if one["kind"] == "answer" and one["request_id"]}
    assert answers == {"late": "REQUEST_TIMED_OUT", "patient": "NONE"}
    assert {one["topic"] for one in decisions if one["kind"] == "topic"} == {"patient"}
    # After a kill between the bus's commit and Spark's, the next job repeats the batch an hour later.
    time.steady_ms += 2 * HOUR_MS
    deadlines.begin(bus.claim("next", {}, time.now_ms), time.slept)
    later = OperatorCluster(bus)
    later.log = DecisionLog(bus, 3, deadlines.check)
    later.batch(bus.read(0, planned))
    assert decisions_of(bus) == decide(bus.read(0, bus.decided_seq()), Policy()).decisions
    recorded = [entry[:4] for entry in bus.read(0, bus.last_seq())]
    assert decide(recorded, Policy()).decisions[: len(decisions)] == decisions_of(bus)


class SlowEngine:
    """An engine whose batches take 20 s each: in each of them requests come, which wait for the next one."""

    def __init__(self, bus: EmbeddedBus, time: Time) -> None:
        self.deadlines = begun(bus, time)
        self._bus = bus
        self._time = time
        time.slept_ms = 3_000
        self._operators = OperatorCluster(bus)
        self._operators.log = DecisionLog(bus, 1, self.deadlines.check)
        self._ticker = Ticker(bus, Claim(1, 1, 1), EngineClock(), 10, HOUR_MS)

    def batch(self, during: list[bytes]) -> None:
        planned = self._bus.read(self._bus.decided_seq(), self._bus.last_seq())
        self._time.steady_ms += 20_000
        self._bus.publish(during)
        self._operators.batch(planned)
        if self.deadlines.should_tell(planned[-1].seq):
            self._ticker.tell_undecided(planned[-1].seq)


def test_a_slow_engine_refuses_late_requests_without_another_claim_or_pass(bus: EmbeddedBus, time: Time) -> None:
    engine = SlowEngine(bus, time)
    bus.publish(registered(time))
    for number in range(5):
        asked = [create_request(f"{name}{number}", time, timeout_ms) for name, timeout_ms in (("a", 9), ("b", 90_000))]
        engine.batch(asked)
    engine.batch([])
    decisions = [msgspec.json.decode(body) for _, _, body in decisions_of(bus)]
    answers = [(one["request_id"], one["error"]) for one in decisions if one["kind"] == "answer" and one["request_id"]]
    expected = [(f"{name}{number}", error) for number in range(5) for name, error in (("a", LATE), ("b", "NONE"))]
    assert answers == expected
    assert bus.claimed_epoch() == 1
    recorded = bus.read(0, bus.decided_seq())
    assert decide([entry[:4] for entry in recorded], Policy()).decisions == decisions_of(bus)
    assert decide(recorded, Policy(), batch_sizes=(1,), shards=3).decisions == decisions_of(bus)


def test_a_quick_batch_and_one_that_nothing_waits_for_tell_nothing(bus: EmbeddedBus, time: Time) -> None:
    deadlines = begun(bus, time)
    time.slept_ms = STANDSTILL_MS - 1
    seq = bus.publish([b"event"])
    bus.commit(1, seq, [], [])
    time.steady_ms += HOUR_MS
    assert not deadlines.should_tell(seq)
    bus.publish([b"event"])
    time.steady_ms += SLOW_BATCH_MS - 1
    assert not deadlines.should_tell(seq)
    time.steady_ms += SLOW_BATCH_MS
    assert deadlines.should_tell(seq)
    # The engine stood still during a quick batch.
    time.slept_ms = STANDSTILL_MS
    assert deadlines.should_tell(seq)
    # A batch that is repeated is no news.
    time.steady_ms += SLOW_BATCH_MS
    assert not deadlines.should_tell(seq - 1)
