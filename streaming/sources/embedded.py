"""The embedded bus as the query's source: a Python data source that gives events in the order of seq.

Spark's offset is the last seq of a batch, so an end in Spark's log and a seq on the bus are the same number.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows
from pyspark.sql.types import StructType

from bus.changes import changes_by
from bus.embedded import EmbeddedBus
from conf.settings import Settings
from isrflow.sqlite.bus_file import Access
from streaming.fan_out import BYTES_PER_ARROW_BATCH, ROWS_PER_ARROW_BATCH, SCHEMA, rows_of_events
from streaming.keys import Keys, read_option
from streaming.sources.interface import Source

FORMAT = "isrflow-bus"
# How long Spark's question for the next batch waits for something to decide. A stop waits for it too.
NEWS_TIMEOUT_S = 0.05
NEWS_POLL_MS = 10


def source(bus: EmbeddedBus) -> Source:
    """Return the source that reads ``bus``."""
    return EmbeddedSource(bus)


class EmbeddedSource:
    """The ``Source`` of one SQLite file."""

    is_local = True
    # A standby is on the same machine, and so is the checkpoint that it takes over.
    has_pages = False
    watches = True

    def __init__(self, bus: EmbeddedBus) -> None:
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
        session.dataSource.register(BusSource)
        return (
            session.readStream.format(FORMAT)
            .option("path", str(self._bus.path.absolute()))
            .option("keys", keys.option)
            .option("max_events", settings.max_events_per_batch)
            .option("max_bytes", settings.max_bytes_per_batch)
            .option("after", after)
            .option("defer", defer)
            .option("lock_timeout_s", settings.sqlite_lock_timeout_ms / 1_000)
            .load()
        )

    def interval_ms(self, settings: Settings) -> None:
        return None


class Span(InputPartition):
    """The events after ``after``, through ``through``."""

    def __init__(self, after: int, through: int) -> None:
        self.after = after
        self.through = through


class BusSource(DataSource):
    """The data source of a bus.

    Options: ``path``; ``keys``, those of the shards (``streaming/keys.py``); ``max_events`` and ``max_bytes``, a
    batch's bounds; ``after``, where a new checkpoint starts; ``defer``, whether heartbeats and offsets wait for the
    next tick (``EmbeddedBus.batch_end``); ``lock_timeout_s``, how long to wait for a locked file.
    """

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: StructType) -> "BusReader":
        return BusReader(self.options)


class BusReader(DataSourceStreamReader):
    """The bus in bounded batches. An offset is the last seq of a batch."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.path = options["path"]
        self.max_events = int(options["max_events"])
        self.max_bytes = int(options["max_bytes"])
        self.keys = read_option(options["keys"])
        self.after = int(options["after"])
        self.defer = options["defer"] == "true"
        self.lock_timeout_s = float(options["lock_timeout_s"])
        self._bus: EmbeddedBus | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_bus": None}

    @property
    def bus(self) -> EmbeddedBus:
        if self._bus is None:
            self._bus = EmbeddedBus(self.path, Access.WRITE, lock_timeout_s=self.lock_timeout_s)
        return self._bus

    def initialOffset(self) -> dict[str, int]:
        return {"seq": self.after}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self.max_events)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        if isinstance(limit, ReadAllAvailable):
            return {"seq": max(self.bus.last_seq(), start["seq"])}
        return {"seq": self._awaited_end(start["seq"])}

    def _awaited_end(self, after: int) -> int:
        """Return where the next batch ends, or ``after`` if nothing comes to decide within ``NEWS_TIMEOUT_S``.

        Spark asks again 10 ms after an answer without news. Each question costs it and Python more than ten looks here.
        """
        ends_s = time.monotonic() + (NEWS_TIMEOUT_S if self.defer else 0.0)
        # Notes the version of the file before it is read.
        self.bus.changed()
        while (end := self.bus.batch_end(after, self.max_events, self.max_bytes, defer=self.defer)) == after:
            if not changes_by(self.bus.changed, ends_s, NEWS_POLL_MS):
                break
        return end

    def reportLatestOffset(self) -> dict[str, int]:
        return {"seq": self.bus.last_seq()}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return [Span(start["seq"], end["seq"])] if end["seq"] > start["seq"] else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Span)
        # Opened for writing, because a reader that opens a bus without a writer does not see what is published later.
        bus = EmbeddedBus(self.path, Access.WRITE, lock_timeout_s=self.lock_timeout_s)
        try:
            after = partition.after
            while after < partition.through:
                # Not by seq, because a recorded log's seqs may be far apart and start anywhere.
                entries = bus.read_first(after, partition.through, ROWS_PER_ARROW_BATCH, BYTES_PER_ARROW_BATCH)
                after = entries[-1].seq if entries else partition.through
                yield from rows_of_events(entries, self.keys)
        finally:
            bus.close()

    def commit(self, end: dict[str, int]) -> None:
        """Note on the bus that the checkpoint has passed ``end``, so that retention may remove events up to it."""
        self.bus.passed(end["seq"])

    def stop(self) -> None:
        if self._bus is not None:
            self._bus.close()
