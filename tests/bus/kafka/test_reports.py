"""Which reports of log ends a bus on Kafka took in, read back with their seqs."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bus.interface import Entry
from bus.kafka import reports
from bus.kafka.batches import Batches, Bounds, Position
from bus.kafka.bus import KafkaBus
from bus.kafka.connection import Connection
from bus.kafka.reports import ReportLog, Taken, valid
from isrflow.kafka.address import parse
from tests.support.kafka_reader import reader_of
from tests.support.waiting import wait_until

TICK = b'{"kind":"tick","time_ms":1}'
BOUNDS = Bounds(4, 10_000)
ALL = 2**62


def taken(epoch: int, after: int, through: int) -> Taken:
    return Taken(epoch, after, through, [])


@pytest.mark.parametrize(
    ("written", "left"),
    [
        ([(1, 0, 10), (1, 10, 20)], [(1, 0, 10), (1, 10, 20)]),
        # A batch that is planned again, smaller or larger.
        ([(1, 0, 10), (1, 10, 20), (1, 10, 15), (1, 15, 25)], [(1, 0, 10), (1, 10, 15), (1, 15, 25)]),
        ([(1, 0, 10), (1, 10, 20), (2, 10, 30)], [(1, 0, 10), (2, 10, 30)]),
        # From an older state, all that came after it is void.
        ([(1, 0, 10), (1, 10, 20), (1, 20, 30), (2, 0, 25)], [(2, 0, 25)]),
        # A superseded job writes late.
        ([(1, 0, 10), (2, 10, 20), (2, 20, 30), (1, 10, 40)], [(1, 0, 10), (2, 10, 20), (2, 20, 30)]),
    ],
)
def test_what_was_planned_again_is_void(written: list[tuple[int, int, int]], left: list[tuple[int, int, int]]) -> None:
    assert [one[:3] for one in valid([taken(*one) for one in written])] == left


def report(number: int) -> bytes:
    fields = {"kind": "log_end_offset", "time_ms": number, "topic": f"t{number % 5}", "partition": 0, "broker": 1}
    return json.dumps(fields).encode()


@pytest.fixture
def bus(kafka_url: str) -> Iterator[KafkaBus]:
    bus = KafkaBus(kafka_url)
    yield bus
    bus.close()


def planned(bus: KafkaBus, epoch: int, after: Position | None = None) -> tuple[list[Entry], list[Position]]:
    """Plan and write down all batches that there are now, as the source does."""
    batches, log = Batches(str(bus.address), bus.offsets_partitions), ReportLog(Connection(parse(str(bus.address))))
    at = batches.first(0) if after is None else after
    entries: list[Entry] = []
    ends = [at]
    while (end := batches.plan(at, BOUNDS)) != at:
        some = list(batches.read(at, end))
        log.write(epoch, at.seq, end.seq, some)
        entries += some
        at = end
        ends.append(at)
    batches.close()
    return entries, ends


@pytest.mark.kafka_bus
def test_reports_come_back_where_the_batches_had_them(bus: KafkaBus, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(30):
        bus.publish_own([TICK, report(number), report(number + 1)])
    before, ends = planned(bus, epoch=1)
    # Killed in mid-log: another job plans the rest again, with what came meanwhile.
    bus.publish_own([TICK, report(99)])
    resumed = ends[len(ends) // 2]
    again, _ = planned(bus, 2, resumed)
    expected = [entry for entry in before if entry.seq <= resumed.seq] + again
    assert len([entry for entry in expected if reports.is_report(entry)]) > 20
    assert bus.recorded(0, ALL, 10_000, ALL) == expected
    middle = expected[len(expected) // 2].seq
    assert bus.recorded(0, middle, 10_000, ALL) == [entry for entry in expected if entry.seq <= middle]
    paged: list[Entry] = []
    monkeypatch.setattr(reports, "READ_BYTES_MAX", 2_000)
    while page := bus.recorded(paged[-1].seq if paged else 0, ALL, 7, 500):
        assert len(page) <= 7
        paged += page
    assert paged == expected


@pytest.mark.kafka_bus
def test_a_large_batch_is_written_in_pieces(bus: KafkaBus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "RECORD_BYTES", 200)
    log = ReportLog(Connection(parse(str(bus.address))))
    entries = [Entry(seq, b"x" * 90, seq, False) for seq in range(1, 12)]
    log.write(1, 0, 2**20, entries)
    assert log.between(0, 2**20) == (entries, 2**20)
    assert log.between(4, 8) == (entries[4:8], 8)


@pytest.mark.kafka_bus
def test_the_past_is_whole_from_the_first_batch_whose_reports_are_kept(
    bus: KafkaBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "MARGIN", 1)
    assert bus.kept_after() == 0
    log = ReportLog(Connection(parse(str(bus.address))))
    # An older version decided up to 5 and kept no reports.
    for after in range(5, 9):
        log.write(1, after, after + 1, [Entry(after + 1, b"x", after, False)])
    assert bus.kept_after() == 5
    bus.thin(8)
    wait_until(lambda: bus.kept_after() == 7, "the reports to be gone")
    assert [entry.seq for entry in log.between(7, 9)[0]] == [8, 9]


@pytest.mark.kafka_bus
def test_a_read_that_is_cut_short_still_minds_what_was_planned_again(
    bus: KafkaBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = ReportLog(Connection(parse(str(bus.address))))
    for epoch, after, through, raw in ((1, 0, 5, b"a"), (1, 5, 10, b"void"), (1, 10, 15, b"void"), (2, 5, 12, b"b")):
        log.write(epoch, after, through, [Entry(through, raw, 1, False)])
    monkeypatch.setattr(reports, "READ_BYTES_MAX", 10)
    found: list[Entry] = []
    at, reads = 0, 0
    while at < 20:
        some, at = log.between(at, 20)
        found += some
        reads += 1
    assert [(entry.seq, entry.raw) for entry in found] == [(5, b"a"), (12, b"b")]
    assert reads > 1


@pytest.mark.kafka_bus
def test_what_was_decided_before_the_job_is_not_written_again(bus: KafkaBus, tmp_path: Path) -> None:
    epoch = bus.claim("a", {}, 1).controller_epoch
    through = bus.publish_own([TICK])
    bus.commit(epoch, through, [], [])
    wait_until(lambda: bus.decided_seq() == through, "the commit to be readable")
    reader = reader_of(bus, tmp_path, max_events=9, max_bytes=1_000, controller_epoch=2, committed_seq=through)
    ends = []
    start = reader.initialOffset()
    for _ in range(2):
        end = reader.latestOffset(start, reader.getDefaultReadLimit())
        reader.partitions(start, end)
        ends.append(bus.kept_after())
        bus.publish_own([report(1), TICK])
        start = end
    assert ends == [0, through]
    reader.stop()
