"""Retention of the embedded bus: in slices that others can write between, and with a log that stays short."""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from structlog.testing import capture_logs

from bus import embedded_history, retention, thinning
from bus.embedded import EmbeddedBus
from bus.interface import BusError, Decided, TrimmedError
from bus.retention import wal_bytes
from conf.settings import Settings
from streaming.retention import Passes, Retention
from tests.support.bus_rows import execute, set_mark
from tests.support.trimming import trim
from tests.support.waiting import TIMEOUT_S, wait_until

TICK = b'{"kind":"tick","time_ms":1}'
EVENT = b'{"kind":"delete_topic","time_ms":1,"topic":"t"}'


@pytest.fixture
def bus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedBus]:
    monkeypatch.setattr(embedded_history, "SLICE_ROWS", 10)
    bus = EmbeddedBus(tmp_path / "bus.db")
    yield bus
    bus.close()


def fill(bus: EmbeddedBus, events: int, decisions: int, size: int = 1) -> None:
    bus.publish([EVENT] * events)
    bus.commit(0, events, [Decided(events, idx, b"d" * size) for idx in range(decisions)], [])
    bus.passed(events)


def count(bus: EmbeddedBus, table: str) -> int:
    [(rows,)] = execute(bus.path, f"SELECT count(*) FROM {table}")
    return int(rows)


def test_trimming_is_bounded_in_rows_and_leaves_whole_events(bus: EmbeddedBus) -> None:
    fill(bus, events=25, decisions=12)
    slices = []
    while rows := trim(bus, 0):
        slices.append(rows)
        with pytest.raises(TrimmedError):
            bus.decisions((24, 0), 100)
        if first := bus.decisions((0, -1), 1):
            assert bus.decisions((25, first[0].idx - 1), 100)[0] == first[0], "a reader that is this far continues"
            with pytest.raises(TrimmedError):
                bus.decisions((25, first[0].idx - 2), 100)
    assert slices == [10, 10, 10, 7]
    assert count(bus, "events") == count(bus, "decisions") == 0
    assert bus.decisions((25, 11), 100) == []


def test_trimming_is_bounded_in_bytes(bus: EmbeddedBus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "SLICE_BYTES", 250)
    fill(bus, events=1, decisions=7, size=100)
    assert [trim(bus, 0) for _ in range(3)] == [3 + 1, 3, 1]


def thinned(bus: EmbeddedBus, through: int) -> list[int]:
    """Thin all events, and return how much each slice checked."""
    checked = []
    while rows := bus.thin(through):
        checked.append(rows)
    return checked


def watermarks(bus: EmbeddedBus, events: int, each: int) -> None:
    bus.publish_own([TICK] * events)
    said = [Decided(seq, idx, b'{"kind":"high_watermark"}') for seq in range(1, events + 1) for idx in range(each)]
    bus.commit(0, events, said, [])
    bus.passed(events)


def test_thinning_is_bounded_in_rows(bus: EmbeddedBus) -> None:
    watermarks(bus, events=12, each=2)
    assert thinned(bus, 12) == [10, 10, 4 + 6, 6]
    assert count(bus, "events") == count(bus, "decisions") == 0


def test_thinning_is_bounded_in_bytes_and_events_wait_for_their_decisions(
    bus: EmbeddedBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    for part in (retention, thinning):
        monkeypatch.setattr(part, "SLICE_BYTES", 60)
    watermarks(bus, events=4, each=1)
    # Three decisions have more bytes. Events are thinned once no decision is left to check.
    assert thinned(bus, 4)[:2] == [3, 1 + 3]
    assert count(bus, "events") == count(bus, "decisions") == 0


def test_new_decisions_do_not_keep_old_events(bus: EmbeddedBus) -> None:
    fill(bus, events=50, decisions=0)
    for seq in range(51, 61):
        bus.publish([b'{"kind":"log_end_offset","time_ms":1}'])
        bus.commit(0, seq, [Decided(seq, 0, b"d")], [])
        bus.passed(seq)
        trim(bus, 0)
    assert count(bus, "events") == count(bus, "decisions") == 0


def test_a_killed_trim_continues_where_it_stopped(bus: EmbeddedBus) -> None:
    fill(bus, events=25, decisions=0)
    assert trim(bus, 0) == 10
    bus.close()
    again = EmbeddedBus(bus.path)
    with pytest.raises(TrimmedError, match="up to 10 were removed"):
        again.read(9, 25)
    assert [entry.seq for entry in again.read(10, 25)] == list(range(11, 26))
    assert trim(again, 0) == 10
    again.close()


def test_an_older_mark_without_an_index_covers_the_whole_event(bus: EmbeddedBus) -> None:
    fill(bus, events=3, decisions=2)
    set_mark(bus.path, "trimmed_decisions", 2)
    assert len(bus.decisions((2, 5), 10)) == 2
    with pytest.raises(TrimmedError, match="read on from 3"):
        bus.decisions((1, 5), 10)


@pytest.mark.parametrize("remove", [lambda bus: trim(bus, 0), lambda bus: bus.thin(0)], ids=["trim", "thin"])
def test_a_log_that_grew_under_a_reader_is_truncated_later(
    bus: EmbeddedBus, monkeypatch: pytest.MonkeyPatch, remove: Callable[[EmbeddedBus], int]
) -> None:
    monkeypatch.setattr(retention, "WAL_BYTES_MAX", 100_000)
    monkeypatch.setattr(retention, "WAL_PAUSE_S", 0.0)
    reader = sqlite3.connect(bus.path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM events").fetchone()
    bus.publish([b"x" * 1_000_000])
    with capture_logs() as said:
        remove(bus)
    assert wal_bytes(bus.path) > 1_000_000, "the reader keeps it, and is not waited for long"
    assert [line["event"] for line in said] == ["the bus's write-ahead log grows because another process keeps reading"]
    reader.close()
    remove(bus)
    assert wal_bytes(bus.path) == 0
    bus.publish([EVENT])


def test_the_slices_of_a_pass_lock_out_writers_once_for_a_reader_that_stands_still(
    bus: EmbeddedBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "WAL_BYTES_MAX", 100_000)
    reader = sqlite3.connect(bus.path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM events").fetchone()
    fill(bus, events=25, decisions=1, size=1_000_000)
    with capture_logs() as said:
        slices = sum(1 for _ in iter(lambda: trim(bus, 0), 0))
    reader.close()
    assert (slices, len(said)) == (3, 1)


def test_trimming_runs_beside_the_job_until_done(bus: EmbeddedBus) -> None:
    fill(bus, events=100, decisions=30)
    thread = Retention(bus, Settings(history_events=5, retention_events=7, history_ms=-1), 0, Passes(0.001))
    thread.start()
    wait_until(lambda: count(bus, "events") == 5 + 7, "retention to be done")
    thread.stop()
    thread.join(TIMEOUT_S)


def retained(bus: EmbeddedBus, until: Callable[[], bool], **settings: int) -> None:
    """Run the thread until something is so."""
    thread = Retention(bus, msgspec.structs.replace(Settings(), **settings), 0, Passes(0.001))
    thread.start()
    wait_until(until, "retention to be done")
    thread.stop()
    thread.join(TIMEOUT_S)


def age(bus: EmbeddedBus, first: int, last: int, by_ms: int) -> None:
    execute(bus.path, "UPDATE events SET entered_ms = entered_ms - ? WHERE seq BETWEEN ? AND ?", by_ms, first, last)


def test_retention_goes_by_time_and_the_history_is_a_part_of_it(bus: EmbeddedBus) -> None:
    bus.publish_own([EVENT, TICK] * 5)
    bus.commit(0, 10, [Decided(seq, 0, b"{}") for seq in (1, 3, 4, 5, 7, 9)], [])
    bus.passed(10)
    age(bus, 1, 2, 7_200_000)
    age(bus, 3, 6, 600_000)
    limits = {"history_ms": 60_000, "history_events": 4, "retention_ms": 3_600_000}
    retained(bus, lambda: len(bus.recorded(0, 10, 20, 10_000)) == 7, **limits)
    assert [entry.seq for entry in bus.recorded(0, 10, 20, 10_000)] == [3, 4, 5, 7, 8, 9, 10]
    assert bus.kept_after() == 6


def test_the_newest_events_stay_whatever_the_clock_says(bus: EmbeddedBus) -> None:
    fill(bus, events=30, decisions=2)
    age(bus, 1, 30, 10**11)
    retained(bus, lambda: count(bus, "events") == 20, history_events=20, retention_events=20)
    assert bus.recorded(0, 100, 1, 10_000)[0].seq == 11


def test_snapshots_are_taken_in_intervals_and_removed_with_the_history(bus: EmbeddedBus) -> None:
    fill(bus, events=10, decisions=1)
    retained(bus, lambda: len(bus.snapshots()) == 1)
    bus.publish([EVENT] * 10)
    bus.commit(0, 20, [], [])
    bus.passed(20)
    retained(bus, lambda: len(bus.snapshots()) == 2, history_snapshot_interval_ms=1)
    retained(bus, lambda: len(bus.snapshots()) == 1, history_events=5)
    assert [snapshot.seq for snapshot in bus.snapshots()] == [20]


def test_a_failed_trim_is_logged_and_retried(bus: EmbeddedBus, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, again = [], threading.Event()

    def fail(through: int, retain: int) -> int:
        asked.append(through)
        if len(asked) > 1:
            again.set()
        raise BusError("locked")

    monkeypatch.setattr(bus, "thin", fail)
    thread = Retention(bus, Settings(), 0, Passes(0.001))
    thread.start()
    assert again.wait(TIMEOUT_S)
    assert thread.is_alive()
    thread.stop()
    thread.join(TIMEOUT_S)
    assert not thread.is_alive()


def test_old_events_are_removed_although_no_snapshot_can_be_taken(
    bus: EmbeddedBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(bus, events=30, decisions=1)

    def fail(controller_epoch: int) -> bool:
        raise BusError("the topic of snapshots cannot be written")

    monkeypatch.setattr(bus, "keep_snapshot", fail)
    retained(bus, lambda: bus.kept_after() == 25, history_events=5)


def test_passes_come_in_time_although_every_claim_is_shorter(bus: EmbeddedBus) -> None:
    fill(bus, events=10, decisions=1)
    ended: list[float] = []

    class Noted(Passes):
        def ended(self) -> None:
            super().ended()
            ended.append(self.due_in_s())

    passes = Noted(interval_s=0.2)

    def short_claim() -> bool:
        thread = Retention(bus, Settings(), 0, passes)
        thread.start()
        thread.join(0.02)
        thread.stop()
        thread.join(TIMEOUT_S)
        # A claim may end between the snapshot and the end of the pass.
        return bool(ended)

    assert not short_claim()
    wait_until(short_claim, "the end of a pass")
    assert (len(bus.snapshots()), len(ended)) == (1, 1), "the next pass is due later"


def test_a_pass_that_a_claim_cut_short_is_due_at_once(bus: EmbeddedBus, monkeypatch: pytest.MonkeyPatch) -> None:
    passes = Passes(interval_s=0.1)
    thread = Retention(bus, Settings(), 0, passes)

    def stopped(through: int, retain: int) -> int:
        thread.stop()
        return 1

    monkeypatch.setattr(bus, "thin", stopped)
    thread.start()
    thread.join(TIMEOUT_S)
    assert passes.due_in_s() == 0


def test_a_defect_ends_the_thread_and_is_kept_as_the_cause(bus: EmbeddedBus, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(through: int, retain: int) -> int:
        raise OverflowError("too large")

    monkeypatch.setattr(bus, "thin", fail)
    thread = Retention(bus, Settings(), 0, Passes(0.001))
    thread.start()
    thread.join(TIMEOUT_S)
    assert (thread.is_alive(), repr(thread.error)) == (False, "OverflowError('too large')")
