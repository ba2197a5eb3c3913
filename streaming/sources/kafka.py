"""The bus on Kafka as the query's source: a Python data source that gives its batches (``bus/kafka/batches.py``).

Spark asks one process where a batch ends, and another one for its events. To find the end, the first process must read
the events, because their weight depends on their texts. So it puts them into a file, which the second process reads,
and each event is fetched from Kafka once. The file exists for one batch. Another machine cannot read it, so on a
cluster the events travel with the task, which a batch's bound in bytes allows.

Rejected: Spark's own connector. It plans batches by their number of events alone, and a planned batch is in the
checkpoint, so a batch that does not fit into memory would fail again at each start.
"""

import io
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows
from pyspark.sql.types import StructType

from bus.interface import Entry
from bus.kafka.batches import Batches, Bounds, Position
from bus.kafka.bus import KafkaBus
from bus.kafka.connection import Connection
from bus.kafka.reports import ReportLog, is_report
from conf.settings import Settings
from isrflow.kafka.address import parse
from isrflow.kafka.seqs import offset_after
from streaming.sources.event_rows import (
    ARROW_SCHEMA,
    BYTES_PER_ARROW_BATCH,
    ROWS_PER_ARROW_BATCH,
    SCHEMA,
    rows_of,
)
from streaming.sources.interface import Source

FORMAT = "isrflow-bus-on-kafka"


def source(bus: KafkaBus) -> Source:
    """Return the source that reads ``bus``."""
    return KafkaSource(bus)


class KafkaSource:
    """The ``Source`` of the events topic and the offsets topic."""

    is_local = False

    def __init__(self, bus: KafkaBus) -> None:
        self._bus = bus

    def events(
        self, session: SparkSession, settings: Settings, *, after: int, defer: bool, spool_dir: Path | None
    ) -> DataFrame:
        session.dataSource.register(BusOnKafka)
        return (
            session.readStream.format(FORMAT)
            .option("url", str(self._bus.address))
            .option("offsets_partitions", self._bus.offsets_partitions)
            .option("max_events", settings.max_events_per_batch)
            .option("max_bytes", settings.max_bytes_per_batch)
            .option("after", after)
            .option("spool_dir", "" if spool_dir is None else str(spool_dir))
            # Not the newest one, under which a job that was just superseded would void what its successor writes down.
            .option("controller_epoch", self._bus.held_epoch)
            .option("decided", self._bus.decided_seq())
            .load()
        )

    def interval_ms(self, settings: Settings) -> int:
        """Return how long events are gathered, because each look at the bus is a request to Kafka."""
        return settings.watermark_interval_ms

    def end_of(self, offset: Mapping[str, Any]) -> int | None:
        """Return the offset at which a batch ends in the events topic."""
        end = offset.get("events")
        return end if isinstance(end, int) else None

    def newest_end(self) -> int:
        return offset_after(self._bus.last_seq())

    def is_decided_to(self, end: int) -> bool:
        return self._bus.is_decided_to(end)


class Spooled(InputPartition):
    """The file with a batch's events."""

    def __init__(self, file: str) -> None:
        self.file = file


class Sent(InputPartition):
    """A batch's events, on their way to an executor with the task that reads them."""

    def __init__(self, body: bytes) -> None:
        self.body = body


class BusOnKafka(DataSource):
    """The data source of a bus on Kafka.

    Options: ``url`` and ``offsets_partitions``, the bus; ``max_events`` and ``max_bytes``, a batch's bounds; ``after``,
    the seq where a new checkpoint starts; ``spool_dir``, where the files go, or nothing if other machines read;
    ``controller_epoch``, the job's; ``decided``, how far events were decided when it started.
    """

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: StructType) -> "KafkaReader":
        return KafkaReader(self.options)


def _write(sink: IO[bytes], entries: Sequence[Entry]) -> None:
    with pa.ipc.new_stream(sink, ARROW_SCHEMA) as stream:
        for rows in slices(entries):
            stream.write_batch(rows)


class KafkaReader(DataSourceStreamReader):
    """The bus in bounded batches. An offset is a ``Position``."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.url = options["url"]
        self.offsets_partitions = int(options["offsets_partitions"])
        self.bounds = Bounds(int(options["max_events"]), int(options["max_bytes"]))
        self.after = int(options["after"])
        self.spool_dir = options["spool_dir"]
        self.controller_epoch = int(options["controller_epoch"])
        self.decided = int(options["decided"])
        self._has_planned = False
        self._reports: ReportLog | None = None
        self._batches: Batches | None = None
        self._spooled: Path | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_batches": None, "_reports": None}

    @property
    def batches(self) -> Batches:
        if self._batches is None:
            self._batches = Batches(self.url, self.offsets_partitions)
        return self._batches

    def initialOffset(self) -> dict[str, Any]:
        return _noted(self.batches.first(self.after))

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self.bounds.events)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        return _noted(self.batches.plan(_position(start), self.bounds))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        self._remove_spooled()
        entries = list(self.batches.read(_position(start), _position(end)))
        self._note_reports(start["seq"], end["seq"], entries)
        if not self.spool_dir:
            body = io.BytesIO()
            _write(body, entries)
            return [Sent(body.getvalue())]
        with tempfile.NamedTemporaryFile(dir=self.spool_dir, prefix="events-", delete=False) as file:
            self._spooled = Path(file.name)
            _write(file, entries)
        return [Spooled(file.name)]

    def _note_reports(self, after: int, through: int, entries: Sequence[Entry]) -> None:
        """Write down which reports the batch has, before it runs.

        The first batch is written even without reports, because another job may have planned reports there. What was
        decided before this job is not written again, because compaction may have removed reports that it had.
        """
        if through <= self.decided:
            return
        if not self._has_planned or any(map(is_report, entries)):
            self._reports = self._reports or ReportLog(Connection(parse(self.url)))
            self._reports.write(self.controller_epoch, after, through, entries)
            self._has_planned = True

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, Sent):
            with pa.ipc.open_stream(partition.body) as stream:
                yield from stream
            return
        assert isinstance(partition, Spooled)
        with Path(partition.file).open("rb") as file, pa.ipc.open_stream(file) as stream:
            yield from stream

    def stop(self) -> None:
        self._remove_spooled()
        if self._batches is not None:
            self._batches.close()

    def _remove_spooled(self) -> None:
        if self._spooled is not None:
            self._spooled.unlink(missing_ok=True)
            self._spooled = None


def _noted(position: Position) -> dict[str, Any]:
    noted: dict[str, Any] = msgspec.to_builtins(position)
    return noted


def _position(noted: dict[str, Any]) -> Position:
    return msgspec.convert(noted, Position)


def slices(entries: Iterable[Entry]) -> Iterator[pa.RecordBatch]:
    """Cut events into Arrow batches of bounded count and bytes. A single longer event makes a batch of its own."""
    some: list[Entry] = []
    total = 0
    for entry in entries:
        if some and (total + len(entry.raw) > BYTES_PER_ARROW_BATCH or len(some) == ROWS_PER_ARROW_BATCH):
            yield rows_of(some)
            some, total = [], 0
        total += len(entry.raw)
        some.append(entry)
    if some:
        yield rows_of(some)
