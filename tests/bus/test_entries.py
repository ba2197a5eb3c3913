"""What a bus knows of an event: when it entered, and whether it is a job's claim."""

import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bus.embedded import EmbeddedBus
from bus.interface import BusError, EngineOnlyError, Entry
from isrflow.sqlite.bus_file import Access

EVENT = b'{"kind":"delete_topic","time_ms":1,"topic":"t"}'
FORGED = b'{"kind":"controller_started","time_ms":1,"controller_id":"x","controller_epoch":2147483647}'
# The schema of files from before events had an entry time.
OLD_SCHEMA = """
PRAGMA journal_mode = WAL;
CREATE TABLE events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT, patient INTEGER NOT NULL, raw BLOB NOT NULL);
CREATE TABLE decisions (
    seq INTEGER NOT NULL, idx INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (seq, idx)) WITHOUT ROWID;
CREATE TABLE pages (
    shard INTEGER NOT NULL, page INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (shard, page));
CREATE TABLE claims (
    controller_epoch INTEGER PRIMARY KEY, controller_id TEXT NOT NULL, seq INTEGER NOT NULL, time_ms INTEGER NOT NULL);
CREATE TABLE marks (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO marks VALUES ('schema_version', 1);
INSERT INTO events (kind, patient, raw) VALUES ('controller_started', 0, CAST('{"old":1}' AS BLOB));
INSERT INTO claims VALUES (1, 'old', 1, 1);
"""


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


def test_a_file_of_an_older_version_gets_entry_times(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    connection = sqlite3.connect(path)
    connection.executescript(OLD_SCHEMA)
    reader = EmbeddedBus(path, Access.READ)
    assert reader.read(0, 9) == [Entry(1, b'{"old":1}', None, True)]
    assert connection.execute("SELECT * FROM events").fetchone() == (1, "controller_started", 0, b'{"old":1}')
    buses = [EmbeddedBus(path), EmbeddedBus(path), reader]
    # A process of the older version that still has the file open continues to work.
    connection.execute("INSERT INTO events (kind, patient, raw) VALUES (NULL, 0, x'78')")
    connection.commit()
    connection.close()
    buses[0].publish([EVENT])
    claim, old, new = buses[1].read(0, 9)
    assert (claim.entered_ms, claim.is_claim) == (None, True)
    assert (old.entered_ms, old.is_claim) == (None, False)
    assert new.entered_ms is not None
    assert reader.read(0, 9) == [claim, old, new], "a reader that was open before the writer came sees them too"
    for bus in buses:
        bus.close()


def test_a_file_with_all_columns_is_checked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    connect = sqlite3.connect

    def traced(*given: Any, **named: Any) -> sqlite3.Connection:
        connection = connect(*given, **named)
        connection.set_trace_callback(asked.append)
        return connection

    monkeypatch.setattr(sqlite3, "connect", traced)
    bus = EmbeddedBus(tmp_path / "bus.db")
    bus.publish([EVENT])
    bus.read(0, 1)
    asked.clear()
    bus.read(0, 1)
    bus.decisions((0, -1), 1)
    bus.image()
    assert any("raw" in statement for statement in asked)
    assert not any("table_info" in statement for statement in asked)
    bus.close()


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
