"""What was seen beside the log makes a cause surer, or another one. What was not seen changes nothing."""

import time
from pathlib import Path

import pytest

from brokers.shadow.controller_log import ControllerLog
from brokers.shadow.evidence import with_words
from brokers.shadow.fetch_times import FetchTimes
from brokers.shadow.operation import Operation
from state.observed_events import Cause, Certainty, Evidence, ObservedBroker, Results

FENCED_MS = 1_770_000_000_000
LEADER, BROKER = 101, 1
SESSION = "Fencing broker 1 at epoch 8 because its session has timed out."
STOPPED = "Unfenced broker 1 has requested and been granted an immediate shutdown."
STOPS = "Unfenced broker 1 has requested and been granted a controlled shutdown."


def operation(cause: Cause, certainty: Certainty = Certainty.likely) -> Operation:
    evidence = Evidence(broker=BROKER, alternatives=(Cause.session_expired,))
    results = Results(brokers=(ObservedBroker(broker=BROKER, broker_epoch=8, fenced=True),))
    return Operation(10, 10, 1, FENCED_MS, cause, certainty, evidence, results)


def said(folder: Path, *messages: str) -> list[ControllerLog]:
    shown = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(FENCED_MS // 1000))
    path = folder / "controller.log"
    path.write_text("".join(f"[{shown},000] INFO [QuorumController id=101] {one} (o.a.k.c)\n" for one in messages))
    return [ControllerLog(path)]


@pytest.mark.parametrize(
    ("before", "message", "cause"),
    [
        (Cause.session_or_shutdown, SESSION, Cause.session_expired),
        (Cause.session_or_shutdown, STOPPED, Cause.shutdown_complete),
        (Cause.session_expired, SESSION, Cause.session_expired),
        (Cause.shutdown_complete, SESSION, Cause.session_expired),
        (Cause.controlled_shutdown, STOPS, Cause.controlled_shutdown),
    ],
)
def test_the_controllers_own_words_make_it_certain(tmp_path: Path, before: Cause, message: str, cause: Cause) -> None:
    weighed = with_words(operation(before), said(tmp_path, message))
    assert (weighed.cause, weighed.certainty) == (cause, Certainty.certain)
    assert (weighed.evidence.log_line, weighed.evidence.alternatives) == (message, ())


@pytest.mark.parametrize(
    ("before", "message"),
    [
        # Another process of the broker, another broker, and another operation.
        (Cause.session_or_shutdown, SESSION.replace("epoch 8", "epoch 7")),
        (Cause.session_or_shutdown, SESSION.replace("broker 1", "broker 2")),
        (Cause.session_or_shutdown, STOPS),
        (Cause.controlled_shutdown, SESSION),
        (Cause.broker_ready, SESSION),
    ],
)
def test_words_about_something_else_say_nothing(tmp_path: Path, before: Cause, message: str) -> None:
    assert with_words(operation(before), said(tmp_path, message)) == operation(before)


@pytest.mark.parametrize(
    ("answers", "silent_ms"),
    [
        ([(900, 8_500)], 8_500),
        ([(900, 1_200)], 1_200),
        # The broker has started again, and its last fetch before is known from an earlier answer.
        ([(900, 8_500), (-100, -50)], 8_500),
        # Nothing was heard of the controller for a while, so silence proves nothing.
        ([(9_000, 9_100), (-100, -50)], None),
        ([], None),
    ],
)
def test_silence_counts_as_long_as_it_was_seen(answers: list[tuple[int, int]], silent_ms: int | None) -> None:
    times = FetchTimes()
    for asked_ms, fetched_ms in answers:
        times.note({LEADER: FENCED_MS - asked_ms, BROKER: FENCED_MS - fetched_ms})
    assert times.silent_ms(BROKER, FENCED_MS) == silent_ms
