"""How a client reads the decisions of a bus on Kafka, and closes it, with Kafka's clients played."""

import itertools
import threading
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import pytest
from kafka import TopicPartition
from kafka.errors import OffsetOutOfRangeError

import isrflow
from isrflow.contract import AFTER_ALL_OF
from isrflow.kafka import log
from isrflow.kafka.log import KafkaLog
from isrflow.kafka.records import DECISION_KEY, PREVIOUS
from tests.support.waiting import TIMEOUT_S

DECISIONS = TopicPartition("isrflow.decisions", 0)


class Record(NamedTuple):
    offset: int
    key: bytes
    headers: list[tuple[str, bytes]]
    value: bytes


class Played:
    """Kafka's consumer and producer on a bus. ``meanwhile`` is called in the middle of each look at it.

    ``looked_up`` is called when the leaders of topics are asked for.
    """

    def __init__(self) -> None:
        self.closed = 0
        self.meanwhile: Callable[[], object] = lambda: None
        self.looked_up: Callable[[], object] = lambda: None
        self.start = self.end = 0
        self._at = 0
        self._records: list[Record] = []
        self._newest = (0, -1)
        # How many records one poll brings at most.
        self.poll_max = 1_000

    def decide(self, *places: tuple[int, int], value: bytes = b"{}") -> None:
        """Append decisions."""
        for place in places:
            header = PREVIOUS, DECISION_KEY.pack(*self._newest)
            self._records.append(Record(self.end, DECISION_KEY.pack(*place), [header], value))
            self.end += 1
            self._newest = place

    def remove_before(self, offset: int) -> None:
        """Do as retention does."""
        self.start = offset
        self._records = [record for record in self._records if record.offset >= offset]

    def make_again(self) -> None:
        """Delete the topic and make it again, without decisions."""
        self.start = self.end = 0
        self._records, self._newest = [], (0, -1)

    def topics(self) -> set[str]:
        self.looked_up()
        return {"isrflow.events", "isrflow.decisions"}

    def partitions_for_topic(self, topic: str) -> set[int]:
        return {0}

    def assign(self, partitions: Collection[Any]) -> None:
        pass

    def beginning_offsets(self, partitions: Collection[Any]) -> dict[Any, int]:
        self.meanwhile()
        assert not self.closed, "it is closed in the middle of a call"
        return dict.fromkeys(partitions, self.start)

    def end_offsets(self, partitions: Collection[Any]) -> dict[Any, int]:
        return dict.fromkeys(partitions, self.end)

    def seek(self, partition: Any, offset: int) -> None:
        self._at = offset

    def position(self, partition: Any) -> int:
        return self._at

    def poll(self, *, timeout_ms: int, max_records: int) -> dict[Any, list[Record]]:
        if not self.start <= self._at <= self.end:
            raise OffsetOutOfRangeError({DECISIONS: self._at})
        found = [record for record in self._records if record.offset >= self._at][: min(max_records, self.poll_max)]
        if not found:
            return {}
        self._at = found[-1].offset + 1
        return {DECISIONS: found}

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


def followed(played: Played) -> tuple[KafkaLog, tuple[int, int]]:
    """Return a log that has read five decisions to their end, and the place of the last one."""
    played.decide(*((seq, 0) for seq in range(1, 6)))
    bus = KafkaLog("kafka://127.0.0.1:1")
    found = bus.decisions((0, -1), 10, passing_over=False)
    assert [decided.seq for decided in found] == list(range(1, 6))
    assert bus.decisions((5, 0), 10, passing_over=False) == []
    return bus, (5, 0)


def seqs(bus: KafkaLog, after: tuple[int, int], limit: int = 10) -> list[int]:
    return [decided.seq for decided in bus.decisions(after, limit, passing_over=False)]


REMOVED = r"decisions up to \(%d, 0\) were removed: read on from %d, or start from the current state"


@pytest.mark.parametrize("has_looked", [False, True])
def test_a_follower_hears_that_retention_has_removed_all_that_it_has_not_read(played: Played, has_looked: bool) -> None:
    bus, _ = followed(played)
    played.remove_before(5)
    after = (3, 0)
    if has_looked:
        assert bus.decisions(after, 10, passing_over=False) == [], "nothing is left that could tell"
    played.decide((9, 0))
    with pytest.raises(isrflow.TrimmedError, match=REMOVED % (5, 5 + 1)):
        bus.decisions(after, 10, passing_over=False)
    with pytest.raises(isrflow.TrimmedError):
        bus.decisions(after, 10, passing_over=False)
    assert seqs(bus, (5, 0)) == [9], "it has missed nothing since then"


def test_a_follower_hears_that_retention_has_overtaken_it(played: Played) -> None:
    bus, after = followed(played)
    played.decide((6, 0), (7, 0), (8, 0))
    played.remove_before(7)
    with pytest.raises(isrflow.TrimmedError, match=REMOVED % (7, 7 + 1)):
        bus.decisions(after, 10, passing_over=False)
    assert seqs(bus, (0, -1)) == [8], "from the beginning it starts with the oldest one that is left"


def test_a_follower_whose_next_decision_is_left_goes_on(played: Played) -> None:
    bus, after = followed(played)
    played.decide((6, 0), (7, 0))
    played.remove_before(5)
    assert seqs(bus, after) == [6, 7]


@pytest.mark.parametrize("limit", [1, 2, 10])
def test_decisions_before_a_place_ahead_of_the_topic_are_passed(played: Played, limit: int) -> None:
    bus, _ = followed(played)
    after = (7, AFTER_ALL_OF)
    assert seqs(bus, after, limit) == []
    played.decide((6, 0))
    assert seqs(bus, after, limit) == []
    played.decide((7, 0), (7, 1), (8, 0))
    assert seqs(bus, after, limit) == [8]


@pytest.mark.parametrize("left", [0, 2])
def test_a_topic_that_was_made_again_is_an_error_for_all_that_read_it(
    played: Played, monkeypatch: pytest.MonkeyPatch, left: int
) -> None:
    monkeypatch.setattr(log, "LOST_END_TIMEOUT_S", 0.2)
    bus, after = followed(played)
    played.make_again()
    played.decide(*((seq, 0) for seq in range(1, left + 1)))
    lost = f"decisions ends at offset {left}, but was read up to offset 5: it was deleted and made again, or Kafka has"
    for place in (after, after, (0, -1)):
        with pytest.raises(isrflow.BusError, match=lost):
            bus.decisions(place, 10, passing_over=False)
    with pytest.raises(isrflow.BusError, match=lost):
        bus.newest_decision()


def test_a_broker_that_leads_the_topic_no_longer_may_answer_with_an_older_end(played: Played) -> None:
    bus, after = followed(played)
    played.decide((6, 0))
    played.end = 3
    played.looked_up = lambda: setattr(played, "end", 6)
    assert seqs(bus, after) == [6]


def test_decisions_that_come_slowly_are_waited_for_as_long_as_they_come(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    bus, after = followed(played)
    played.decide(*((seq, 0) for seq in range(6, 12)))
    played.poll_max, now_s = 1, itertools.count(0.0, log.REQUEST_TIMEOUT_S / 3)
    monkeypatch.setattr(log.time, "monotonic", lambda: next(now_s))
    assert seqs(bus, after) == [6, 7, 8, 9, 10, 11]


def test_large_decisions_come_in_several_reads(played: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    bus, after = followed(played)
    monkeypatch.setattr(log, "DECISIONS_BYTES_MAX", 1_000)
    played.decide(*((seq, 0) for seq in range(6, 12)), value=b"0" * 400)
    played.poll_max = 1
    assert seqs(bus, after) == [6, 7, 8]
    assert seqs(bus, (8, 0)) == [9, 10, 11]
    assert bus.newest_decision() == (11, 0)
