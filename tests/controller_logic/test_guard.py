"""An event that the rules fail on is reported, changes nothing, and stops nothing."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from bus.interface import MAX_EVENT_BYTES
from controller_logic import guard, liveness
from controller_logic.batch import Batch
from controller_logic.decision_recorder import DecisionRecorder
from controller_logic.guard import guarded_step
from controller_logic.raw_text import RAW_CHARS_MAX
from controller_logic.replay import decide, first_states, logged
from controller_logic.step import HANDLERS, step
from state.canonical import number
from state.cluster import Outcome, State
from state.decisions import Rejected
from state.events import AnyEvent, BrokerHeartbeat, CreateTopic, Logged, Tick
from state.part import part_of
from state.policy import Policy
from state.reason import Reason
from tests.support.random_logs import seeded

BAD_SEQ = 60


def broken(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Make a rule fail at one event, after the event's changes."""

    def breaking(batch: Batch, event: Any) -> Any:
        done = rule(batch, event)
        if batch.logged.seq == BAD_SEQ:
            raise KeyError("some defect")
        return done

    return breaking


def with_a_second(kind: bytes, log: list[tuple[int, bytes]]) -> tuple[list[tuple[int, bytes]], bytes]:
    """Repeat an early event of a kind in the log, at BAD_SEQ."""
    again = next(raw for seq, raw in log if seq > 12 and b'"kind":"%s"' % kind in raw)
    later = [(seq + (seq >= BAD_SEQ), raw) for seq, raw in log]
    return sorted([*later, (BAD_SEQ, again)]), again


@pytest.mark.parametrize("shards", [1, 4])
@pytest.mark.parametrize(("kind", "event"), [(b"broker_heartbeat", BrokerHeartbeat), (b"tick", Tick)])
def test_a_failing_event_is_reported_and_the_rest_is_decided(
    monkeypatch: pytest.MonkeyPatch, kind: bytes, event: type[AnyEvent], shards: int
) -> None:
    log, bad = with_a_second(kind, seeded(seed=3, count=200))
    expected = decide([entry for entry in log if entry[0] != BAD_SEQ], Policy()).decisions
    monkeypatch.setitem(HANDLERS, event, broken(HANDLERS[event]))
    found = decide(log, Policy(), shards=shards, batch_sizes=(25,)).decisions
    (body,) = [body for seq, _, body in found if seq == BAD_SEQ]
    said = msgspec.json.decode(body)
    assert (said["kind"], said["reason"], said["raw"]) == ("rejected", "RULES_FAILED", bad.decode())
    assert said["message"].endswith("KeyError: 'some defect'")
    assert [decision for decision in found if decision[0] != BAD_SEQ] == expected


@pytest.mark.parametrize("shards", [1, 4])
def test_an_event_that_decides_the_same_place_twice_fails(monkeypatch: pytest.MonkeyPatch, shards: int) -> None:
    """Otherwise its decisions could not be numbered, and the same batch would fail again after each restart."""
    log, bad = with_a_second(b"tick", seeded(seed=3, count=200))
    expected = decide([entry for entry in log if entry[0] != BAD_SEQ], Policy()).decisions

    def said_twice(batch: Batch) -> bool:
        if batch.logged.seq == BAD_SEQ:
            for _ in range(2):
                batch.recorder.say_config("cluster", None, {})
        return expire_sessions(batch)

    expire_sessions = liveness.expire_sessions
    monkeypatch.setattr(liveness, "expire_sessions", said_twice)
    found = decide(log, Policy(), shards=shards, batch_sizes=(25,)).decisions
    (body,) = [body for seq, _, body in found if seq == BAD_SEQ]
    said = msgspec.json.decode(body)
    assert (said["kind"], said["reason"], said["raw"]) == ("rejected", "RULES_FAILED", bad.decode())
    assert said["message"].endswith("ValueError: two decisions in one place")
    assert [decision for decision in found if decision[0] != BAD_SEQ] == expected


LOG = [
    b'{"kind":"controller_started","time_ms":4,"controller_id":"c","controller_epoch":7}',
    b'{"kind":"broker_register","time_ms":5,"broker":1,"incarnation":"i"}',
    b'{"kind":"broker_heartbeat","time_ms":6,"broker":1,"broker_epoch":2,"want_fence":false,"want_shutdown":false}',
    b'{"kind":"create_topic","time_ms":7,"topic":"a"}',
    b'{"kind":"create_topic","time_ms":8,"topic":"fails"}',
    b"\xff",
    b'{"kind":"create_topic","time_ms":9,"topic":"b"}',
]


def test_changes_of_the_other_events_are_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    create = HANDLERS[CreateTopic]

    def failing(batch: Batch, event: Any) -> None:
        create(batch, event)
        assert event.topic != "fails"

    def failing_always(*_: object) -> None:
        raise KeyError("some defect")

    monkeypatch.setitem(HANDLERS, CreateTopic, failing)
    monkeypatch.setattr(DecisionRecorder, "reject", failing_always)
    events = list(logged(enumerate(LOG, start=1)))
    outcome = guarded_step(first_states(1)[0], events, Policy(), overrides={"num.partitions": "2"})
    assert {name: topic and len(topic.partitions) for name, topic in outcome.changes.items()} == {"a": 2, "b": 2}
    assert outcome.state.topics.names() == ["a", "b"]
    assert (outcome.state.cluster.seq, outcome.state.cluster.clock_ms) == (7, 9)
    rejected = [d for d in outcome.decisions if isinstance(d, Rejected)]
    assert [(d.seq, d.controller_epoch, d.time_ms, d.field) for d in rejected] == [(5, 7, 8, ""), (6, 7, 8, "")]
    assert rejected[1].raw == "\\xff"


def test_a_batch_without_failure_is_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    batches: list[int] = []

    def stepping(state: State, events: Sequence[Logged], *rest: Any, **named: Any) -> Outcome:
        batches.append(len(events))
        return step(state, events, *rest, **named)

    monkeypatch.setattr(guard, "step", stepping)
    events = list(logged(enumerate(LOG, start=1)))
    outcome = guarded_step(first_states(1)[0], events, Policy(), overrides={"num.partitions": "2"})
    assert batches == [len(LOG)]
    expected = step(first_states(1)[0], events, Policy(), overrides={"num.partitions": "2"})
    assert Outcome(*outcome[:3]) == expected
    assert number(outcome.parts) == number(map(part_of, expected.decisions))


def test_a_failing_event_is_found_by_bisection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Event by event, ten thousand reports with one that fails took five hundred times as long as without it."""
    taken: list[int] = []

    def stepping(state: State, events: Sequence[Logged], *rest: Any, **named: Any) -> Outcome:
        taken.append(len(events))
        if any(isinstance(logged.event, Tick) for logged in events):
            raise KeyError("some defect")
        return step(state, events, *rest, **named)

    log = [b'{"kind":"broker_unregister","time_ms":1,"broker":1}'] * 10_000
    log[7_341] = b'{"kind":"tick","time_ms":1}'
    monkeypatch.setattr(guard, "step", stepping)
    found = guarded_step(first_states(1)[0], list(logged(enumerate(log, start=1))), Policy(), overrides={})
    assert [d.seq for d in found.decisions if d.reason == Reason.RULES_FAILED] == [7_342]
    assert found.state.cluster.seq == len(log)
    assert sum(taken) <= 3.01 * len(log)
    assert len(taken) < 40


def test_no_event_is_blamed_for_a_lack_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> None:
        raise MemoryError

    monkeypatch.setitem(HANDLERS, CreateTopic, failing)
    with pytest.raises(MemoryError):
        guarded_step(first_states(1)[0], list(logged(enumerate(LOG, start=1))), Policy(), overrides={})


def test_an_event_whose_decisions_cannot_be_encoded_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def saying(batch: Batch, event: Any) -> None:
        batch.recorder.answer(message=event.topic.replace("a", "\ud800"))

    monkeypatch.setitem(HANDLERS, CreateTopic, saying)
    found = guarded_step(first_states(1)[0], list(logged(enumerate(LOG, start=1))), Policy(), overrides={})
    failed = {d.seq: d.message for d in found.decisions if d.reason == Reason.RULES_FAILED}
    assert set(failed) == {4, 5}
    assert "UnicodeEncodeError" in failed[4]


@pytest.mark.parametrize("by_the_rules", [True, False])
def test_a_rejected_events_text_is_cut_to_fit_on_a_bus(monkeypatch: pytest.MonkeyPatch, by_the_rules: bool) -> None:
    def failing(*_: object) -> None:
        raise KeyError("some defect")

    if not by_the_rules:
        monkeypatch.setattr(DecisionRecorder, "reject", failing)
    for byte, told in ((b"\xff", r"\xff"), (b"\x01", "\x01")):
        events = list(logged([(1, byte * MAX_EVENT_BYTES)]))
        (decision,) = guarded_step(first_states(1)[0], events, Policy(), overrides={}).decisions
        assert isinstance(decision, Rejected)
        assert decision.raw == (told * RAW_CHARS_MAX)[:RAW_CHARS_MAX] + f"... ({MAX_EVENT_BYTES} bytes)"
        assert len(msgspec.json.encode(decision)) < 7 * RAW_CHARS_MAX
    (decision,) = guarded_step(
        first_states(1)[0], list(logged([(1, b" " * RAW_CHARS_MAX)])), Policy(), overrides={}
    ).decisions
    assert isinstance(decision, Rejected)
    assert decision.raw == " " * RAW_CHARS_MAX
