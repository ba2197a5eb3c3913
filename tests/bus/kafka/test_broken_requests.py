"""Requests of a bus on Kafka whose connection breaks, as when a node is killed."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import OFFSET_INVALID, TopicPartition

from bus.interface import BusError
from bus.kafka import connection
from bus.kafka.connection import Connection
from isrflow.kafka.address import parse


class BreakingAdmin:
    """Kafka's admin client, whose connection breaks in some requests. It reports no error, but an invalid offset."""

    def __init__(self, answers: list[int]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    def list_offsets(self, specs: dict[TopicPartition, object], **given: object) -> dict[TopicPartition, Any]:
        self.asked.append("offsets")
        answered: Future[object] = Future()
        answered.set_result(SimpleNamespace(offset=self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]))
        return dict.fromkeys(specs, answered)

    def list_topics(self, *given: object, **named: object) -> None:
        self.asked.append("topics")

    def poll(self, timeout_s: float) -> None: ...


def asking(answers: list[int], monkeypatch: pytest.MonkeyPatch) -> Connection:
    monkeypatch.setattr(connection, "AdminClient", lambda *given, **named: BreakingAdmin(answers))
    return Connection(parse("kafka://localhost:1/p"))


def test_an_offset_is_asked_for_again_if_the_connection_broke(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asking([OFFSET_INVALID, OFFSET_INVALID, 7], monkeypatch).end_offset("t") == 7
    assert asking([OFFSET_INVALID, 7], monkeypatch).start_offset("t") == 7
    assert asking([OFFSET_INVALID, -1], monkeypatch).offset_since("t", 1) is None


def test_a_connection_that_always_breaks_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "REQUEST_TIMEOUT_S", 0.2)
    with pytest.raises(BusError, match="kafka://localhost:1/p: the connection broke"):
        asking([OFFSET_INVALID], monkeypatch).end_offset("t")


def test_a_new_client_is_connected_before_it_is_asked_for_offsets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before that it may look in vain for the topic's leader, and look again only after 3 s."""
    asked = asking([7], monkeypatch)
    for _ in range(2):
        asked.end_offset("t")
    assert asked.admin.asked == ["topics", "offsets", "offsets"]
    known = asking([7], monkeypatch)
    known.list_topics()
    known.end_offset("t")
    assert known.admin.asked == ["topics", "offsets"]
