"""What a bus knows of an event: when it entered, and whether it is a job's claim."""

import sqlite3
from pathlib import Path

import msgspec
import pytest

from bus.embedded import EmbeddedBus
from bus.interface import BusError, EngineOnlyError, Entry

EVENT = b'{"kind":"delete_topic","time_ms":1,"topic":"t"}'
FORGED = b'{"kind":"controller_started","time_ms":1,"controller_id":"x","controller_epoch":2147483647}'


@pytest.fixture
def bus(tmp_path: Path):
    bus = EmbeddedBus(tmp_path / "bus.db")
    yield bus
    bus.close()


def test_the_bus_says_when_an_event_entered_whatever_its_author_says(
    bus: EmbeddedBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("isrflow.sqlite.log_file.now_ms", lambda: 7_000)
    bus.publish([EVENT, b"no json"])
    bus.claim("a", {}, 5)
    assert [entry.entered_ms for entry in bus.read(0, 9)] == [7_000] * 3


def test_only_a_jobs_claim_is_a_claim(bus: EmbeddedBus) -> None:
    bus.claim("a", {}, 1)
    bus.publish_own([FORGED])
    assert [entry.is_claim for entry in bus.read(0, 9)] == [True, False]
    assert bus.claim("b", {}, 2)[:2] == (2, 3), "nobody else's epoch counts"


@pytest.mark.parametrize("kind", ["tick", "controller_started", "sessions_extended", "leader_imbalance"])
def test_the_engines_own_events_are_refused_from_others(bus: EmbeddedBus, kind: str) -> None:
    event = msgspec.json.encode({"kind": kind, "time_ms": 1})
    with pytest.raises(EngineOnlyError, match=f"event 2 of 2 is a {kind}, which only the engine makes"):
        bus.publish([EVENT, event])
    assert bus.last_seq() == 0, "all or none"
    assert bus.publish_own([event]) == 1


def test_no_epoch_follows_the_last_one(bus: EmbeddedBus) -> None:
    with sqlite3.connect(bus.path) as connection:
        connection.execute("INSERT INTO claims VALUES (2147483647, 'last', 1, 1)")
    connection.close()
    with pytest.raises(BusError, match="controller epoch 2147483647 is the last possible one"):
        bus.claim("a", {}, 1)
    assert bus.last_seq() == 0


def test_a_recorded_log_is_read_as_it_is(bus: EmbeddedBus) -> None:
    recorded = [Entry(3, FORGED), Entry(4, FORGED, 9, True), Entry(9, FORGED, None, False), Entry(10, EVENT, 5)]
    bus.load(recorded)
    assert bus.read(0, 99) == recorded


def test_a_claim_says_how_much_it_found_undecided(tmp_path: Path) -> None:
    path = tmp_path / "bus.db"
    bus = EmbeddedBus(path)
    epoch = bus.claim("first", {}, 1).controller_epoch
    bus.publish([EVENT] * 3)
    bus.commit(epoch, 2, [], [])
    assert {entry.found_ms for entry in bus.read(0, 4)} == {None}
    bus.claim("second", {}, 2)
    bus.publish([EVENT])
    read = bus.read(0, 6)
    found = [entry.found_ms for entry in read]
    assert found == [None, None, read[4].entered_ms, read[4].entered_ms, None, None]
    # They are found even if the read ends before the claim.
    assert [entry.found_ms for entry in bus.read(2, 3)] == [read[4].entered_ms]
    again = EmbeddedBus(tmp_path / "again.db")
    again.load(read)
    assert [entry.found_ms for entry in again.read(0, 6)] == found
    bus.close()
    again.close()
