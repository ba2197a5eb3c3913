"""The index from a partition to the seqs of the decisions about it."""

import contextlib
import sqlite3
from pathlib import Path

import msgspec
import pytest

from bus import partition_index
from bus.decided_runs import runs_in
from bus.embedded import EmbeddedBus
from bus.interface import Decided
from bus.local_index import LocalIndex
from state.decisions import Rejected, StopReplica, encode
from state.reason import Reason
from tests.support.trimming import trim

NO_CLAIM = 0


def about(seq: int, idx: int, topic: str, partition: int, kind: str = "leader_and_isr", **fields: object) -> Decided:
    told = {"kind": kind, "seq": seq, "topic": topic, "partition": partition, **fields}
    return Decided(seq, idx, msgspec.json.encode(told))


def commit(bus: EmbeddedBus, through: int, *decisions: Decided) -> None:
    while bus.last_seq() < through:
        bus.publish([b"{}"])
    bus.commit(NO_CLAIM, through, decisions, [])


@pytest.fixture
def bus(tmp_path: Path) -> EmbeddedBus:
    return EmbeddedBus(tmp_path / "bus.db")


def test_it_names_the_seqs_of_a_partition_newest_first(bus: EmbeddedBus) -> None:
    commit(bus, 3, about(1, 0, "t", 0), about(2, 0, "t", 1), about(3, 0, "t", 0), about(3, 1, "t", 1))
    commit(bus, 5, about(5, 0, "t", 0))
    assert bus.seqs_about("t", 0, 100, 10) == [5, 3, 1]
    assert bus.seqs_about("t", 0, 5, 10) == [3, 1]
    assert bus.seqs_about("t", 0, 100, 2) == [5, 3]
    assert bus.seqs_about("u", 0, 100, 10) == []


def test_high_watermarks_and_requests_that_were_done_have_no_row(bus: EmbeddedBus) -> None:
    done, refused = {"error": "NONE"}, {"error": "FENCED_LEADER_EPOCH"}
    commit(bus, 1, about(1, 0, "t", 0, "high_watermark"))
    commit(bus, 2, about(2, 0, "t", 0, "answer", **done))
    commit(bus, 3, about(3, 0, "t", 0, "answer", **refused))
    assert bus.seqs_about("t", 0, 100, 10) == [3]


def test_a_refused_part_of_an_answer_counts_for_its_partition(bus: EmbeddedBus) -> None:
    results = [{"topic": "t", "partition": number, "error": "NONE" if number else "E"} for number in (0, 1)]
    told = {"kind": "answer", "error": "E", "results": results}
    commit(bus, 1, Decided(1, 0, msgspec.json.encode(told)))
    assert bus.seqs_about("t", 0, 100, 10) == [1]
    assert bus.seqs_about("t", 1, 100, 10) == []


def test_what_is_about_the_topic_is_about_each_partition(bus: EmbeddedBus) -> None:
    commit(bus, 1, Decided(1, 0, b'{"kind":"topic","seq":1,"topic":"t","state":"created"}'))
    commit(bus, 2, Decided(2, 0, b'{"kind":"config","seq":2,"entity":"topic","name":"t","config":{}}'))
    assert bus.seqs_about("t", 4, 100, 10) == [2, 1]


def test_an_event_about_very_many_partitions_has_one_row(bus: EmbeddedBus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_index, "ENTRIES_PER_SEQ_MAX", 3)
    commit(bus, 1, *(about(1, number, "t", number) for number in range(4)))
    assert bus.seqs_about("t", 0, 100, 10) == [1]
    assert count(bus.path) == 1


def count(path: Path) -> int:
    """Count the entries of the index."""
    connection = sqlite3.connect(path)
    try:
        (in_tail,) = connection.execute("SELECT coalesce(sum(length(entries)), 0) FROM index_tail").fetchone()
        (in_eras,) = connection.execute("SELECT coalesce(sum(length(entries)), 0) FROM partition_seqs").fetchone()
    finally:
        connection.close()
    return (int(in_tail) + int(in_eras)) // 12


def eras(path: Path) -> list[int]:
    connection = sqlite3.connect(path)
    try:
        return [era for (era,) in connection.execute("SELECT DISTINCT era FROM partition_seqs ORDER BY era")]
    finally:
        connection.close()


def test_eras_follow_one_another(bus: EmbeddedBus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_index, "ERA_ENTRIES", 2)
    for seq in range(1, 8):
        commit(bus, seq, about(seq, 0, "t", seq % 2))
    assert bus.seqs_about("t", 1, 100, 10) == [7, 5, 3, 1]
    assert bus.seqs_about("t", 1, 100, 3) == [7, 5, 3]
    assert eras(bus.path) == [0, 1, 2], "the newest one is the tail"
    assert count(bus.path) == 7


def test_retention_removes_an_era_whose_decisions_are_all_gone(
    bus: EmbeddedBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition_index, "ERA_ENTRIES", 2)
    for seq in range(1, 8):
        commit(bus, seq, about(seq, 0, "t", 0))
    bus.passed(7)
    while trim(bus, 1):
        pass
    for seq in range(8, 14):
        commit(bus, seq, about(seq, 0, "t", 0))
        bus.passed(seq)
        trim(bus, 1)
    assert eras(bus.path)[0] > 3, "an era is removed when retention comes by again"
    assert bus.seqs_about("t", 0, 100, 3) == [13, 12, 11]


def test_a_batch_that_comes_again_after_a_kill_has_its_rows_once(bus: EmbeddedBus) -> None:
    commit(bus, 1, about(1, 0, "t", 0))
    commit(bus, 1, about(1, 0, "t", 0))
    commit(bus, 2, about(2, 0, "t", 0))
    assert count(bus.path) == 2
    assert bus.seqs_about("t", 0, 100, 10) == [2, 1]


def test_a_file_beside_the_bus_takes_in_what_is_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = [about(1, 0, "t", 0), about(1, 1, "t", 1), about(2, 0, "t", 0), about(2, 1, "t", 1), about(3, 0, "t", 0)]
    asked: list[tuple[int, int]] = []

    def read(after: tuple[int, int], limit: int) -> list[Decided]:
        asked.append(after)
        return [one for one in log if (one.seq, one.idx) > after][: min(limit, 3)]

    index = LocalIndex(tmp_path / "index.db")
    assert index.seqs_about(read, 0, 2, "t", 1, 100, 10) == [2, 1]
    assert index.seqs_about(read, 0, 3, "t", 0, 100, 10) == [3, 2, 1]
    count = len(asked)
    assert index.seqs_about(read, 0, 3, "t", 0, 100, 10) == [3, 2, 1]
    assert len(asked) == count, "nothing was read again"


def test_an_index_in_the_cache_forgets_what_the_bus_has_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition_index, "ERA_ENTRIES", 1)
    log = [about(seq, 0, "t", seq % 2) for seq in range(1, 41)]

    def read(after: tuple[int, int], limit: int) -> list[Decided]:
        return [one for one in log if (one.seq, one.idx) > after][:1]

    def count_of_eras() -> int:
        with contextlib.closing(sqlite3.connect(tmp_path / "index.db")) as connection:
            return int(connection.execute("SELECT count(*) FROM index_eras").fetchone()[0])

    index = LocalIndex(tmp_path / "index.db")
    assert index.seqs_about(read, 0, 40, "t", 0, 100, 100) == [*range(40, 0, -2)]
    assert count_of_eras() > 30
    del log[:30]
    found = index.seqs_about(read, 30, 40, "t", 0, 100, 100)
    assert set(range(40, 30, -2)) <= set(found) <= set(range(40, 28, -2))
    assert count_of_eras() <= 12


def test_a_key_is_the_same_whatever_the_kind_of_decision() -> None:
    fields = {"seq": 1, "controller_epoch": 1, "time_ms": 0, "reason": Reason.ISR_SHRUNK, "topic": "t", "partition": 5}
    stop = StopReplica(**fields, topic_id="i", leader_epoch=0, delete=False, to=())
    refused = Rejected(**fields, raw="", field="", message="")
    as_written = runs_in([Decided(1, 0, encode(stop)), Decided(1, 1, encode(refused)), about(1, 2, "t", 5)])
    assert len(partition_index.entries_of(as_written)) == 3
    assert len(set(partition_index.entries_of(as_written))) == 1
