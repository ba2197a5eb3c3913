"""The embedded bus: one order for all publishers, decisions once, and retention that waits."""

import multiprocessing
import sqlite3
import threading
from pathlib import Path
from typing import NoReturn

import msgspec
import pytest

from bus import embedded
from bus.embedded import EmbeddedBus
from bus.interface import (
    MAX_EVENT_BYTES,
    BusError,
    Decided,
    DivergedError,
    Entry,
    FencedError,
    Page,
    TrimmedError,
)
from bus.weight import PARTITION_BYTES, partitions_named
from isrflow.sqlite import log_file
from tests.support.bus_rows import set_mark
from tests.support.trimming import trim
from tests.support.waiting import TIMEOUT_S

EVENT = b'{"kind":"delete_topic","time_ms":1,"topic":"t"}'
BEAT = b'{"kind":"broker_heartbeat","time_ms":1}'
LAST_BEAT = b'{"kind":"broker_heartbeat","time_ms":1,"want_shutdown":true}'
OFFSET = b'{"kind":"log_end_offset","time_ms":1}'
OFFSETS = b'{"kind":"log_end_offsets","time_ms":1}'
PROCESSES, EACH = 3, 200


@pytest.fixture
def bus(tmp_path: Path):
    with_path = EmbeddedBus(tmp_path / "bus.db")
    yield with_path
    with_path.close()


def trimmed(bus: EmbeddedBus, retain: int) -> int:
    """Trim until nothing is left to remove, and count the removed events and decisions."""
    return sum(iter(lambda: trim(bus, retain), 0))


def publish_many(path: Path, writer: int) -> None:
    bus = EmbeddedBus(path)
    for number in range(EACH):
        bus.publish([b"%d-%d-a" % (writer, number), b"%d-%d-b" % (writer, number)])
    bus.close()


def test_seq_rises_by_one_and_events_stay_as_they_are(bus: EmbeddedBus) -> None:
    assert bus.last_seq() == 0
    assert bus.publish([EVENT, b"\xff not text"]) == 2
    assert bus.publish([]) == 2
    assert [entry[:2] for entry in bus.read(0, 5)] == [(1, EVENT), (2, b"\xff not text")]
    assert bus.read(1, 1) == []


def test_several_processes_append_while_another_reads(bus: EmbeddedBus) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=publish_many, args=(bus.path, n)) for n in range(PROCESSES)]
    for writer in writers:
        writer.start()
    read: list[Entry] = []
    while any(writer.is_alive() for writer in writers) or bus.last_seq() > len(read):
        read += bus.read(len(read), bus.last_seq())
    for writer in writers:
        writer.join(TIMEOUT_S)
    assert [entry.seq for entry in read] == list(range(1, PROCESSES * EACH * 2 + 1))
    for writer in range(PROCESSES):
        mine = [entry.raw for entry in read if entry.raw.startswith(b"%d-" % writer)]
        assert mine == [b"%d-%d-%s" % (writer, n, half) for n in range(EACH) for half in (b"a", b"b")]
    pairs = [entry.raw[:-1] for entry in read]
    assert pairs[::2] == pairs[1::2], "what is published together stays together"


def test_a_publish_with_an_oversized_event_is_refused_as_a_whole(bus: EmbeddedBus) -> None:
    with pytest.raises(BusError, match="limit"):
        bus.publish([EVENT, b"x" * (MAX_EVENT_BYTES + 1)])
    assert bus.last_seq() == 0


def test_claims_at_the_same_moment_get_different_epochs(bus: EmbeddedBus) -> None:
    threads = [threading.Thread(target=bus.claim, args=(str(n), {}, n)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT_S)
    epochs = [msgspec.json.decode(entry.raw)["controller_epoch"] for entry in bus.read(0, 8)]
    assert epochs == list(range(1, 9))


def test_a_batch_is_written_once(bus: EmbeddedBus) -> None:
    bus.publish([EVENT, EVENT])
    decisions = [Decided(1, 0, b"one"), Decided(1, 1, b"two")]
    for _ in range(2):
        bus.commit(0, 2, decisions, [Page(0, -1, b"cluster")])
    assert bus.decisions((0, -1), 10) == decisions
    assert bus.decisions((1, 0), 10) == decisions[1:]
    assert bus.decided_seq() == 2
    assert bus.image() == (2, [Page(0, -1, b"cluster")])


def test_a_batch_repeated_with_other_bounds_adds_only_what_is_new(bus: EmbeddedBus) -> None:
    bus.commit(0, 2, [Decided(1, 0, b"one")], [Page(0, 3, b"old")])
    bus.commit(0, 4, [Decided(1, 0, b"one"), Decided(4, 0, b"four")], [Page(0, 3, b"new")])
    assert [decided.seq for decided in bus.decisions((0, -1), 10)] == [1, 4]
    assert bus.image() == (4, [Page(0, 3, b"new")])


@pytest.mark.parametrize("again", [[Decided(1, 0, b"other")], [Decided(1, 1, b"one")]])
def test_a_repeated_batch_must_have_the_same_decisions(bus: EmbeddedBus, again: list[Decided]) -> None:
    bus.commit(0, 1, [Decided(1, 0, b"one")], [])
    with pytest.raises(DivergedError, match="came out differently"):
        bus.commit(0, 1, again, [])


def test_a_superseded_job_writes_nothing(bus: EmbeddedBus) -> None:
    claim = bus.claim("first", {}, 1)
    bus.claim("second", {}, 2)
    with pytest.raises(FencedError, match="controller epoch 2"):
        bus.commit(claim.controller_epoch, 1, [Decided(1, 0, b"late")], [Page(0, 0, b"late")])
    assert bus.decisions((0, -1), 10) == []
    assert bus.image() == (0, [])


@pytest.mark.parametrize(
    ("passed", "decided", "removed"), [(0, 10, 0), (10, 0, 0), (4, 10, 4), (10, 4, 4), (10, 10, 7)]
)
def test_retention_waits_for_the_checkpoint_and_the_decisions(
    bus: EmbeddedBus, passed: int, decided: int, removed: int
) -> None:
    bus.publish([EVENT] * 10)
    bus.commit(0, decided, [Decided(seq, 0, b"said") for seq in range(1, decided + 1)], [])
    bus.passed(passed)
    assert trimmed(bus, retain=3) == 2 * removed
    assert [entry.seq for entry in bus.read(removed, 10)] == list(range(removed + 1, 11))
    assert bus.last_seq() == 10
    if removed:
        with pytest.raises(TrimmedError, match=f"up to {removed} were removed"):
            bus.read(removed - 1, 10)
        with pytest.raises(TrimmedError, match=f"read on from {removed + 1}"):
            bus.decisions((removed - 1, 0), 10)
        assert bus.decisions((0, -1), 1) == ([Decided(removed + 1, 0, b"said")] if decided > removed else [])


def test_a_follower_that_missed_nothing_gets_no_error(bus: EmbeddedBus) -> None:
    bus.publish([EVENT] * 100)
    bus.commit(0, 100, [Decided(3, 0, b"early"), Decided(3, 1, b"last"), Decided(99, 0, b"new")], [])
    bus.passed(100)
    assert trimmed(bus, retain=10) == 92
    assert bus.decisions((3, 1), 10) == [Decided(99, 0, b"new")]
    with pytest.raises(TrimmedError):
        bus.decisions((2, 0), 10)


def test_seq_continues_after_everything_was_trimmed(bus: EmbeddedBus) -> None:
    bus.publish([EVENT] * 3)
    bus.commit(0, 3, [], [])
    bus.passed(3)
    assert trimmed(bus, retain=0) == 3
    assert bus.last_seq() == 3
    assert bus.publish([EVENT]) == 4


@pytest.mark.parametrize("report", [OFFSET, OFFSETS])
def test_heartbeats_and_offsets_wait_for_the_next_tick(bus: EmbeddedBus, report: bytes) -> None:
    bus.publish([EVENT, BEAT, report])
    assert bus.batch_end(0, 100, defer=True) == 1
    assert bus.batch_end(1, 100, defer=True) == 1
    assert bus.batch_end(0, 100, defer=False) == 3
    assert (bus.due_seq(0), bus.due_seq(1)) == (1, 1)
    assert bus.log_ends_came(2)
    assert not bus.log_ends_came(3)
    bus.publish([LAST_BEAT])
    assert bus.batch_end(1, 100, defer=True) == 4
    assert bus.batch_end(1, 2, defer=True) == 3
    assert bus.batch_end(4, 100, defer=True) == 4
    assert (bus.due_seq(1), bus.due_seq(4)) == (4, 4)


@pytest.mark.parametrize(
    "says",
    [b'"want_fence":true', b'"want_shutdown":true', b'"request_id":"r"', b'"offline_log_dirs":["d"]'],
)
def test_a_heartbeat_that_changes_its_broker_or_awaits_an_answer_starts_a_batch(bus: EmbeddedBus, says: bytes) -> None:
    bus.publish([BEAT, BEAT[:-1] + b"," + says + b"}", BEAT])
    assert bus.batch_end(0, 100, defer=True) == 2
    assert bus.batch_end(2, 100, defer=True) == 2


def test_a_batch_ends_at_its_bound_or_at_the_newest_event(bus: EmbeddedBus) -> None:
    bus.publish([EVENT] * 5)
    assert bus.batch_end(0, 100, defer=False) == 5
    assert bus.batch_end(0, 2, defer=False) == 2
    assert bus.batch_end(5, 2, defer=False) == 5


def test_a_batch_ends_at_its_byte_limit_but_holds_at_least_one_event(bus: EmbeddedBus) -> None:
    bus.publish([BEAT, BEAT, LAST_BEAT, b"x" * 5_000, BEAT])
    assert bus.batch_end(0, 100, 2 * len(BEAT), defer=False) == 2
    assert bus.batch_end(0, 100, 2 * len(BEAT) - 1, defer=True) == 1
    assert bus.batch_end(2, 100, 1_000, defer=False) == 3
    assert bus.batch_end(3, 100, 1_000, defer=False) == 4
    assert bus.batch_end(4, 100, 0, defer=False) == 5
    assert bus.batch_end(5, 100, 0, defer=False) == 5


def test_an_event_that_creates_partitions_weighs_as_much_as_its_decisions(bus: EmbeddedBus) -> None:
    """Without this, ten events of a hundred bytes could lead to gigabytes of decisions in one batch."""
    create = b'{"kind":"create_topic","time_ms":1,"topic":"t%d","partitions":1000}'
    bus.publish([create % n for n in range(4)])
    assert bus.batch_end(0, 100, 2_100 * PARTITION_BYTES, defer=False) == 2
    bus.publish([b'{"kind":"create_partitions","time_ms":1,"topic":"t1","total":9999999}', LAST_BEAT])
    assert bus.batch_end(4, 100, 2_100 * PARTITION_BYTES, defer=False) == 5


@pytest.mark.parametrize(
    ("raw", "count"),
    [
        (b'{"partitions":7,"assignment":null}', 7),
        (b'{"total":9}', 9),
        (b'{"partitions":1,"total":2,"assignment":{"0":[1],"1":[1]}}', 2),
        (b'{"partitions":-1}', 0),
        (b'{"partitions":%d}' % 10**30, 0),
        (b'{"partitions":"7"}', 0),
        (b"[" * 2_000, 0),
        (b"\xff", 0),
    ],
)
def test_the_partitions_that_an_event_names_are_read_from_its_text(raw: bytes, count: int) -> None:
    assert partitions_named(raw) == count


def test_a_rollback_by_sqlite_is_reported_with_its_cause(bus: EmbeddedBus, monkeypatch: pytest.MonkeyPatch) -> None:
    def roll_back(connection: sqlite3.Connection, *given: object) -> NoReturn:
        connection.execute("ROLLBACK")
        raise sqlite3.OperationalError("disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(log_file, "append", roll_back)
        patched.setattr(embedded, "entries_between", roll_back)
        with pytest.raises(BusError, match=r"bus\.db: disk is full"):
            bus.publish([EVENT])
        with pytest.raises(BusError, match=r"bus\.db: disk is full"):
            bus.read(0, 1)
    assert bus.publish([EVENT]) == 1


def test_text_that_is_no_event_is_not_deferred(bus: EmbeddedBus) -> None:
    bus.publish([b"no json"])
    assert bus.batch_end(0, 100, defer=True) == 1


def test_a_file_of_another_schema_is_refused(bus: EmbeddedBus) -> None:
    set_mark(bus.path, "schema_version", 99)
    with pytest.raises(BusError, match="schema version 99"):
        EmbeddedBus(bus.path)


def test_a_file_that_is_no_database_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "bus.db").write_bytes(b"this is no database, whatever its name says" * 100)
    with pytest.raises(BusError, match=r"bus\.db"):
        EmbeddedBus(tmp_path / "bus.db")
