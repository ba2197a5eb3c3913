"""The bus on Kafka as a Spark source: each batch waits in one file, in bounded slices."""

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bus.interface import Entry
from bus.kafka.bus import KafkaBus
from bus.kafka.reports import ReportLog
from conf.settings import Settings
from streaming.sources import event_rows, kafka
from streaming.sources.event_rows import slices
from streaming.sources.kafka import KafkaReader, KafkaSource
from tests.support.kafka_reader import reader_of

REPORT = b'{"kind":"log_end_offset","time_ms":1,"topic":"t","partition":0,"broker":1,"offset":5,"leader_epoch":0}'
TICK = b'{"kind":"tick","time_ms":1,"controller_epoch":2}'
EVENT = b'{"kind":"delete_topic","time_ms":1,"topic":"t"}'


@pytest.fixture
def bus(kafka_url: str) -> Iterator[KafkaBus]:
    bus = KafkaBus(kafka_url)
    yield bus
    bus.close()


def test_slices_are_bounded_by_bytes_and_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_rows, "BYTES_PER_ARROW_BATCH", 20)
    monkeypatch.setattr(event_rows, "ROWS_PER_ARROW_BATCH", 3)
    sizes = [10, 10, 10, 90, 1, 30, 5, 5, 5, 1]
    found = [part.column(1).to_pylist() for part in slices(Entry(1, b"x" * size) for size in sizes)]
    assert [[len(raw) for raw in part] for part in found] == [[10, 10], [10], [90], [1], [30], [5, 5, 5], [1]]
    assert list(slices([])) == []


@pytest.mark.parametrize(
    ("timeout_ms", "interval_ms", "quiet_ms"),
    [
        # A second before it takes over, a standby takes in what is left.
        (3_000, 500, 2_000),
        # But not before a commit is missing.
        (1_000, 500, 750),
        (800, 250, 375),
        # And not later than at three quarters of the silence.
        (10_000, 4_900, 7_500),
        (500, 250, 375),
    ],
)
def test_a_standby_takes_in_the_last_commits_while_it_waits_for_its_turn(
    timeout_ms: int, interval_ms: int, quiet_ms: int
) -> None:
    settings = Settings(controller_standby_timeout_ms=timeout_ms, tick_idle_interval_ms=interval_ms)
    assert kafka.quiet_ms(settings) == quiet_ms


@pytest.mark.kafka_bus
def test_a_batch_waits_in_one_file_until_the_next_one(bus: KafkaBus, tmp_path: Path) -> None:
    events = [EVENT + b" " * number for number in range(8)]
    bus.publish(events)
    reader = reader_of(bus, tmp_path, max_events=3, max_bytes=1_000)
    # Spark notes offsets as JSON, and each of its processes has a reader of its own.
    start: dict[str, Any] = json.loads(json.dumps(reader.initialOffset()))
    taken: list[bytes] = []
    while (end := json.loads(json.dumps(reader.latestOffset(start, reader.getDefaultReadLimit())))) != start:
        (partition,) = reader.partitions(start, end)
        (file,) = tmp_path.iterdir()
        again = reader_of(bus, tmp_path / "nowhere").read(pickle.loads(pickle.dumps(partition)))
        taken += [raw for part in again for raw in part.column(1).to_pylist()]
        start = end
    assert taken == events
    assert KafkaSource(bus).end_of(start) == len(events)
    assert KafkaSource(bus).newest_end() == len(events)
    assert file.exists()
    reader.stop()
    assert not list(tmp_path.iterdir())


class Asked:
    """A session that gives no stream, but keeps the options with which it was asked for one."""

    def __init__(self) -> None:
        self.options: dict[str, str] = {}
        self.dataSource = self.readStream = self

    def register(self, kind: type) -> None:
        pass

    def format(self, name: str) -> "Asked":
        return self

    def option(self, name: str, value: object) -> "Asked":
        self.options[name] = str(value)
        return self

    def load(self) -> None:
        pass


def started_reader(bus: KafkaBus, spool_dir: Path, claim_note: Path | None = None) -> KafkaReader:
    session: Any = Asked()
    KafkaSource(bus).events(session, Settings(), after=0, defer=True, spool_dir=spool_dir, claim_note=claim_note)
    return KafkaReader(session.options)


@pytest.mark.kafka_bus
def test_the_client_that_notes_reports_begins_to_connect_as_the_query_starts(
    bus: KafkaBus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connecting: list[ReportLog] = []
    monkeypatch.setattr(ReportLog, "connect", lambda reports: connecting.append(reports))
    started_reader(bus, tmp_path, claim_note=tmp_path / "claim").getDefaultReadLimit()
    # A standby connects when it has read the state.
    assert not connecting
    started_reader(bus, tmp_path).getDefaultReadLimit()
    assert len(connecting) == 1


@pytest.mark.kafka_bus
def test_the_reports_of_a_batch_are_noted_by_its_job_even_if_a_superseded_one_plans_it_too(
    bus: KafkaBus, kafka_url: str, tmp_path: Path
) -> None:
    """Two jobs started at once: the older one's query starts after the newer one's claim, and plans a longer batch."""
    newer = KafkaBus(kafka_url)
    bus.claim("older", {}, 1)
    newer.claim("newer", {}, 1)
    newer.publish([REPORT])
    newer.publish_own([TICK])
    ends = []
    for job in (newer, bus):
        reader = started_reader(job, tmp_path)
        start = reader.initialOffset()
        ends.append(reader.latestOffset(start, reader.getDefaultReadLimit()))
        reader.partitions(start, ends[-1])
        reader.stop()
        newer.publish_own([TICK])
    assert ends[0]["seq"] < ends[1]["seq"]
    recorded = newer.recorded(0, ends[0]["seq"], 100, 1_000_000)
    assert [entry.raw for entry in recorded][-2:] == [REPORT, TICK]
    newer.close()


def test_an_offset_of_another_source_is_no_end() -> None:
    source = KafkaSource.__new__(KafkaSource)
    assert source.end_of({"isrflow.events": {"0": 7}}) is None
    assert source.end_of({"events": "7"}) is None
