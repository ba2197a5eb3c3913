"""What was seen beside the log makes a cause surer, or another one. What was not seen changes nothing."""

import time
from pathlib import Path

import pytest
from msgspec import UNSET

from brokers.shadow.controller_log import ControllerLog
from brokers.shadow.evidence import EvidenceFound
from brokers.shadow.fetch_times import FetchTimes
from state.observed_events import Cause, Certainty, Evidence, Observed, ObservedBroker, Results

FENCED_MS = 1_770_000_000_000
LEADER, BROKER = 101, 1


def fence(cause: Cause = Cause.session_or_shutdown, certainty: Certainty = Certainty.open) -> Observed:
    alternatives = (Cause.session_expired, Cause.shutdown_complete) if certainty is Certainty.open else ()
    return Observed(
        time_ms=FENCED_MS,
        cluster_id="c",
        offset=10,
        last_offset=10,
        epoch=1,
        cause=cause,
        certainty=certainty,
        evidence=Evidence(broker=BROKER, alternatives=alternatives),
        results=Results(brokers=(ObservedBroker(broker=BROKER, broker_epoch=8, fenced=True),)),
    )


def seen(*answers: tuple[int, int]) -> FetchTimes:
    """Return the answers that came so long before the fence, with how long before it the broker had fetched."""
    times = FetchTimes()
    for asked_ms, fetched_ms in answers:
        times.note({LEADER: FENCED_MS - asked_ms, BROKER: FENCED_MS - fetched_ms})
    return times


@pytest.mark.parametrize(
    ("answers", "cause", "certainty", "silent_ms"),
    [
        ([(900, 8_500)], Cause.session_expired, Certainty.likely, 8_500),
        ([(900, 1_200)], Cause.shutdown_complete, Certainty.likely, 1_200),
        ([(900, 3_000)], Cause.session_or_shutdown, Certainty.open, 3_000),
        # The broker has started again, and its last fetch before is known from an earlier answer.
        ([(900, 8_500), (-100, -50)], Cause.session_expired, Certainty.likely, 8_500),
        # Nothing was heard of the controller for a while, so silence proves nothing.
        ([(9_000, 9_100), (-100, -50)], Cause.session_or_shutdown, Certainty.open, UNSET),
        ([], Cause.session_or_shutdown, Certainty.open, UNSET),
    ],
)
def test_silence_makes_a_session_likely(
    answers: list[tuple[int, int]], cause: Cause, certainty: Certainty, silent_ms: object
) -> None:
    weighed = EvidenceFound(seen(*answers)).weigh(fence())
    assert weighed.evidence
    assert (weighed.cause, weighed.certainty, weighed.evidence.silent_ms) == (cause, certainty, silent_ms)
    assert weighed.evidence.alternatives == (() if certainty is Certainty.likely else fence().evidence.alternatives)


def said(path: Path, message: str) -> ControllerLog:
    shown = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(FENCED_MS // 1000))
    path.write_text(f"[{shown},000] INFO [QuorumController id=101] {message} (o.a.k.c)\n")
    return ControllerLog(path)


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        ("Fencing broker 1 at epoch 8 because its session has timed out.", Cause.session_expired),
        ("Unfenced broker 1 has requested and been granted an immediate shutdown.", Cause.shutdown_complete),
    ],
)
@pytest.mark.parametrize("before", [fence(), fence(Cause.shutdown_complete, Certainty.likely)])
def test_the_controllers_own_words_make_it_certain(
    tmp_path: Path, message: str, cause: Cause, before: Observed
) -> None:
    log = said(tmp_path / "controller.log", message)
    # The words count more than silence.
    weighed = EvidenceFound(seen((900, 3_000)), [log]).weigh(before)
    assert (weighed.cause, weighed.certainty) == (cause, Certainty.certain)
    assert weighed.evidence and weighed.evidence.log_line == message


def test_words_about_another_process_of_the_broker_say_nothing(tmp_path: Path) -> None:
    log = said(tmp_path / "controller.log", "Fencing broker 1 at epoch 7 because its session has timed out.")
    assert EvidenceFound(FetchTimes(), [log]).weigh(fence()) == fence()


def test_a_cause_that_is_certain_stays(tmp_path: Path) -> None:
    before = fence(Cause.session_expired, Certainty.certain)
    weighed = EvidenceFound(seen((900, 1_000))).weigh(before)
    assert (weighed.cause, weighed.certainty) == (before.cause, before.certainty)


def test_operations_about_no_broker_are_left_alone() -> None:
    created = Observed(
        time_ms=FENCED_MS,
        cluster_id="c",
        offset=1,
        last_offset=1,
        epoch=1,
        cause=Cause.topic_created,
        certainty=Certainty.certain,
        results=Results(),
    )
    assert EvidenceFound(FetchTimes()).weigh(created) == created
