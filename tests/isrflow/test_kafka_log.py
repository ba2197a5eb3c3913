"""When a bus on Kafka is closed, with Kafka's clients played."""

import threading
from collections.abc import Callable, Collection
from typing import Any

import pytest

import isrflow
from isrflow.kafka import log
from isrflow.kafka.log import KafkaLog
from tests.support.waiting import TIMEOUT_S


class Played:
    """Kafka's consumer and producer on an empty bus. ``meanwhile`` is called in the middle of each look at it."""

    def __init__(self) -> None:
        self.closed = 0
        self.meanwhile: Callable[[], object] = lambda: None

    def topics(self) -> set[str]:
        return {"isrflow.events", "isrflow.offsets", "isrflow.decisions"}

    def partitions_for_topic(self, topic: str) -> set[int]:
        return {0}

    def assign(self, partitions: Collection[Any]) -> None:
        pass

    def beginning_offsets(self, partitions: Collection[Any]) -> dict[Any, int]:
        self.meanwhile()
        assert not self.closed, "it is closed in the middle of a call"
        return dict.fromkeys(partitions, 0)

    def end_offsets(self, partitions: Collection[Any]) -> dict[Any, int]:
        return dict.fromkeys(partitions, 0)

    def seek(self, partition: Any, offset: int) -> None:
        pass

    def position(self, partition: Any) -> int:
        return 0

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Played:
    made = Played()
    for name in ("KafkaConsumer", "KafkaProducer"):
        monkeypatch.setattr(log, name, lambda **settings: made)
    return made


def in_time(work: Callable[[], object]) -> None:
    """Do ``work`` in another thread, and fail if it does not end."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(TIMEOUT_S)
    assert not thread.is_alive()


def test_a_signal_handler_may_close_the_bus_in_the_middle_of_a_call(played: Played) -> None:
    bus = KafkaLog("kafka://127.0.0.1:1")
    played.meanwhile = bus.close
    in_time(bus.newest_decision)
    assert played.closed == 2, "the consumer and the producer"
    with pytest.raises(isrflow.BusError, match="this program has closed it"):
        bus.newest_decision()


def test_a_bus_that_another_thread_uses_is_closed_after_its_call(played: Played) -> None:
    bus = KafkaLog("kafka://127.0.0.1:1")
    called, go_on = threading.Event(), threading.Event()
    played.meanwhile = lambda: (called.set(), go_on.wait(TIMEOUT_S))
    reader = threading.Thread(target=bus.newest_decision, daemon=True)
    reader.start()
    assert called.wait(TIMEOUT_S)
    closer = threading.Thread(target=bus.close, daemon=True)
    closer.start()
    go_on.set()
    for thread in (reader, closer):
        thread.join(TIMEOUT_S)
    assert played.closed >= 2
    with pytest.raises(isrflow.BusError, match="this program has closed it"):
        bus.newest_decision()
