"""The bus on Kafka as the query's source: a Python data source that gives its batches (``bus/kafka/batches.py``).

Spark asks one process where a batch ends, and another one for its events. To find the end, the first process must read
the events, because their weight depends on their texts. So it puts them into a file, which the second process reads,
and each event is fetched from Kafka once. The file exists for one batch. Another machine cannot read it, so on a
cluster the events travel with the task, which a batch's bound in bytes allows.

A standby's query begins with pages of the state (``followed_pages``), and goes on with events after the claim.

Rejected: Spark's own connector. It plans batches by their number of events alone, and a planned batch is in the
checkpoint, so a batch that does not fit into memory would fail again at each start.
"""

import io
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows
from pyspark.sql.types import StructType

from bus.kafka.batches import Batches, Bounds
from bus.kafka.bus import KafkaBus
from conf.settings import Settings
from isrflow.kafka.address import parse
from streaming.claim_note import read_note
from streaming.fan_out import ARROW_SCHEMA, SCHEMA, rows_of_events, rows_of_pages
from streaming.keys import Keys, read_option
from streaming.sources.followed_pages import FollowedPages
from streaming.sources.interface import Source
from streaming.standby import silence_ms

FORMAT = "isrflow-bus-on-kafka"
# A batch with the last changed pages takes half of this.
TAKEN_IN_WITHIN_MS = 1_000


def source(bus: KafkaBus) -> Source:
    """Return the source that reads ``bus``."""
    return KafkaSource(bus)


class KafkaSource:
    """The ``Source`` of the events topic."""

    is_local = False
    has_pages = True
    watches = False

    def __init__(self, bus: KafkaBus) -> None:
        self._bus = bus

    def events(
        self,
        session: SparkSession,
        settings: Settings,
        *,
        keys: Keys,
        after: int,
        defer: bool,
        spool_dir: Path | None,
        claim_note: Path | None = None,
    ) -> DataFrame:
        session.dataSource.register(BusOnKafka)
        return (
            session.readStream.format(FORMAT)
            .option("url", str(self._bus.address))
            .option("keys", keys.option)
            .option("max_events", settings.max_events_per_batch)
            .option("max_bytes", settings.max_bytes_per_batch)
            .option("after", after)
            .option("defer", defer)
            .option("spool_dir", "" if spool_dir is None else str(spool_dir))
            .option("claim_seq", self._bus.held_claim.seq)
            .option("claim_note_file", "" if claim_note is None else str(claim_note))
            .option("layouts", self._bus.layouts())
            .option("quiet_ms", quiet_ms(settings))
            .load()
        )

    def interval_ms(self, settings: Settings) -> int:
        """Return how long events are gathered, because each look at the bus is a request to Kafka."""
        return settings.watermark_interval_ms


def quiet_ms(settings: Settings) -> int:
    """Return after how long without a commit a standby takes in the last ones, so that it has them before its claim.

    An active engine commits about once in each ``tick.idle.interval.ms``.
    """
    silent_ms = silence_ms(settings)
    between_commits_ms = settings.tick_idle_interval_ms * 3 // 2
    return min(silent_ms * 3 // 4, max(silent_ms - TAKEN_IN_WITHIN_MS, between_commits_ms))


class Spooled(InputPartition):
    """The file with a batch's rows."""

    def __init__(self, file: str) -> None:
        self.file = file


class Sent(InputPartition):
    """A batch's rows, on their way to an executor with the task that reads them."""

    def __init__(self, body: bytes) -> None:
        self.body = body


class BusOnKafka(DataSource):
    """The data source of a bus on Kafka.

    Options: ``url``, the bus; ``keys``, those of the shards (``streaming/keys.py``); ``max_events`` and ``max_bytes``,
    a batch's bounds; ``after``, the seq where a new checkpoint starts; ``defer``, whether heartbeats and log ends wait
    (``Batches.plan``); ``spool_dir``, where the files go, or nothing if other machines read; ``claim_seq``, the event
    of the job's claim, or 0. With a ``claim_note_file`` pages come first, until that file names the claim
    (``ClaimNote``). ``layouts`` and ``quiet_ms`` are as in ``FollowedPages``.
    """

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: StructType) -> "KafkaReader":
        return KafkaReader(self.options)


def _write(sink: IO[bytes], batches: Iterable[pa.RecordBatch]) -> None:
    with pa.ipc.new_stream(sink, ARROW_SCHEMA) as stream:
        for rows in batches:
            stream.write_batch(rows)


class KafkaReader(DataSourceStreamReader):
    """The bus in bounded batches. An offset is the last seq of a batch."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.url = options["url"]
        self.bounds = Bounds(int(options["max_events"]), int(options["max_bytes"]))
        self.keys = read_option(options["keys"])
        self.after = int(options["after"])
        self.defer = options["defer"] == "true"
        self.spool_dir = options["spool_dir"]
        # 0 in a job that stands by, until the file names its claim.
        self.claim_seq = int(options["claim_seq"])
        self.claim_note_file = options["claim_note_file"]
        self.layouts = int(options["layouts"])
        self.quiet_ms = int(options["quiet_ms"])
        self._pages: FollowedPages | None = None
        self._batches: Batches | None = None
        self._spooled: Path | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_batches": None, "_pages": None}

    @property
    def batches(self) -> Batches:
        if self._batches is None:
            self._batches = Batches(self.url)
            self._batches.claimed(self.claim_seq)
        return self._batches

    @property
    def pages(self) -> FollowedPages:
        if self._pages is None:
            self._pages = FollowedPages(parse(self.url), self.layouts, self.quiet_ms)
        return self._pages

    def initialOffset(self) -> dict[str, int]:
        return {"seq": 0 if self.claim_note_file else self.batches.first(self.after)}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self.bounds.events)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        if self.claim_note_file:
            claim_note = read_note(Path(self.claim_note_file))
            through = self.pages.plan(start["seq"], claim_note)
            if through > start["seq"]:
                return {"seq": self._ready_after(through)}
            if claim_note is None:
                return start
            self._begin_events(claim_note.claim_seq)
        return {"seq": self.batches.plan(start["seq"], self.bounds, defer=self.defer)}

    def _ready_after(self, seq: int) -> int:
        """Return where events begin after a state, and begin to fetch them."""
        after = self.batches.first(seq)
        self.batches.get_ready(after)
        return after

    def _begin_events(self, claim_seq: int) -> None:
        self.claim_seq = claim_seq
        self.batches.claimed(claim_seq)
        self.pages.close()
        self._pages, self.claim_note_file = None, ""

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        self._remove_spooled()
        if self.claim_note_file:
            rows = rows_of_pages(self.pages.between(start["seq"], end["seq"]), self.keys)
        else:
            rows = rows_of_events(self.batches.read(start["seq"], end["seq"]), self.keys)
        if not self.spool_dir:
            body = io.BytesIO()
            _write(body, rows)
            return [Sent(body.getvalue())]
        with tempfile.NamedTemporaryFile(dir=self.spool_dir, prefix="events-", delete=False) as file:
            self._spooled = Path(file.name)
            _write(file, rows)
        return [Spooled(file.name)]

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
        if self._pages is not None:
            self._pages.close()

    def _remove_spooled(self) -> None:
        if self._spooled is not None:
            self._spooled.unlink(missing_ok=True)
            self._spooled = None
