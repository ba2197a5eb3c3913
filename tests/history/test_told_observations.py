"""What an observed controller did is told with how sure its cause is."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from history.explanation import explain, text_of
from history.told_events import told_event
from state.observed_events import Cause
from tests.support.decided_bus import DecidedBus
from tests.support.observing import TOPIC_ID, Shadow, broker, partition

OPERATION = {"kind": "observed", "time_ms": 0, "cluster_id": "c", "offset": 210, "last_offset": 214, "epoch": 1}


def told(cause: str, certainty: str = "certain", /, parts: tuple[int, int] = (0, 1), **evidence: Any) -> str:
    part = {"part": parts[0], "parts": parts[1]}
    why = {"cause": cause, "certainty": certainty, "evidence": evidence, "results": {}}
    return told_event(msgspec.json.encode(OPERATION | part | why))


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        (
            told("session_expired", broker=2, silent_ms=9_180),
            "Broker 2 was fenced at offset 210: its session expired (it had not fetched for 9.2 s).",
        ),
        (
            told("session_or_shutdown", "open", broker=2),
            "Broker 2 was fenced at offset 210: either its session expired or it stopped at once when it was asked to.",
        ),
        (
            told("session_or_shutdown", "open", broker=2, alternatives=["session_expired", "shutdown_complete"]),
            "Broker 2 was fenced at offset 210: either its session expired or its controlled shutdown was complete.",
        ),
        (
            told("shutdown_complete", "likely", broker=2, alternatives=["session_expired"]),
            "Broker 2 was fenced at offset 210: "
            "probably its controlled shutdown was complete, else its session expired.",
        ),
        (told("broker_registered", broker=1), "Broker 1 registered at offset 210."),
        (told("topic_deleted", "likely", parts=(1, 3)), "A topic was deleted at offset 210, part 2 of 3."),
        (
            told("broker_ready", log_line="Caught up"),
            'A broker was unfenced at offset 210: it is ready to serve. The controller\'s log says: "Caught up".',
        ),
    ],
)
def test_a_cause_is_told_as_sure_as_it_is(sentence: str, expected: str) -> None:
    assert sentence == expected


@pytest.mark.parametrize("cause", list(Cause))
@pytest.mark.parametrize("certainty", ["certain", "likely", "open"])
def test_every_cause_has_a_sentence(cause: Cause, certainty: str) -> None:
    sentence = told(cause, certainty, broker=7)
    assert " at offset 210" in sentence
    assert sentence.endswith(".")
    assert "{}" not in sentence


def test_an_explanation_says_what_was_observed_and_where_the_rules_differ(tmp_path: Path) -> None:
    world = Shadow()
    topic = {"topic": "t", "topic_id": TOPIC_ID}
    first = partition(0, (1, 2), (1, 2), 1, (0, 0))
    world.observe("seed", brokers=[broker(1), broker(2)], topics=[topic], partitions=[first])
    world.observe(
        "session_expired",
        evidence={"broker": 1, "silent_ms": 9_000},
        brokers=[broker(1, fenced=True)],
        partitions=[partition(0, (1, 2), (2,), 2, (1, 1))],
    )
    world.observe("isr_expanded", partitions=[partition(0, (1, 2), (1, 2), 2, (1, 2))])
    bus = DecidedBus(tmp_path / "bus.db")
    last = bus.take(world.log)
    found = explain(bus.bus, "t", 0, last)
    assert found is not None
    lines = [line for line in text_of(found) if not line.startswith("seq")]
    assert lines == [
        "t-0 as of seq 3: leader 2, ISR 1,2 of replicas 1,2, leader epoch 1, partition epoch 2.",
        "",
        "  The observation began at offset 1.",
        "  Topic t was created.",
        "  t-0 got leader 1, ISR 1,2, on replicas 1,2.",
        "  Rule OBSERVATION_BEGAN: what was found when the observation began is taken as it is.",
        "",
        "  Broker 1 was fenced at offset 2: its session expired (it had not fetched for 9.0 s).",
        "  t-0: leader 1 -> 2, ISR 1,2 -> 2, leader epoch 0 -> 1, partition epoch 0 -> 1.",
        "  Rule LEADER_FENCED: when the leader is gone, the first assigned replica that is in sync and online leads.",
        "  Broker 1 was passed over because it was fenced.",
        "",
        "  A leader added followers to the ISR at offset 3: they caught up.",
        "  t-0: ISR 2 -> 1,2, partition epoch 1 -> 2.",
        "  Rule ISR_EXPANDED: the leader proposes the ISR, and it counts if no fence refuses it.",
        "  Violation of 'no fenced broker joins the ISR': 1 joined the ISR 1,2 while fenced or shutting down.",
    ]
    bus.close()
