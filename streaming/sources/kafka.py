"""The bus on Kafka as the query's source: two topics, merged into one order batch by batch.

The problem: control events are in one topic, and reports of log ends (``log_end_offset`` events) in another one,
because there are many reports. Kafka has no order between topics, and Spark gives a batch's rows in none. But the rules
need one total order, and a repeated batch must come out the same.

The insight: a report only takes effect at a tick. So a batch puts all its reports right before its last tick.

    events topic     4:beat   5:tick   6:beat             7:tick   8:beat
    offsets topic                               a  b  c
    merged           4:beat   5:tick   6:beat   a  b  c   7:tick   8:beat

Spark's checkpoint says for each planned batch where it ends in both topics. So a repeated batch has the same rows, and
the same rows always get the same order: control events by their offset, reports by partition and offset.

A report gets the next seq after the control event before it (``bus/kafka/seqs``). If that event is in an earlier batch,
this module does not know the last seq. It gives a stand-in, which ``place`` replaces in the operator.

A batch may be of any length, because Spark bounds it only by its number of records. The order needs some bytes of each
row, and the texts wait in an unnamed file. Rejected: a source of our own, which could bound a batch by weight. Spark's
is well kept, and files do as well.
"""

import functools
import tempfile
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import unix_millis

from bus.engine_only import is_started
from bus.interface import Entry
from bus.kafka.bus import KafkaBus
from bus.kafka.claims import Claims, newest_claims_of
from bus.kafka.seqs import offset_after, placed, seq_of, unplaced
from conf.settings import Settings
from state.event_text import decode
from state.events import Tick
from state.found import found_ms
from streaming.sources.event_rows import BYTES_PER_ARROW_BATCH, rows_of
from streaming.sources.interface import Order, Place, Source

EARLIEST = -2
# By default a batch on the embedded bus weighs no more than this.
RAW_BYTES_IN_MEMORY = 32 * 1024 * 1024
# How many records Spark's client for Kafka unpacks at once, however long each is. Its default is 500.
RECORDS_PER_POLL = 32


def source(bus: KafkaBus) -> Source:
    """Return the source that reads ``bus``."""
    return KafkaSource(bus)


class KafkaSource:
    """The ``Source`` of the events topic and the offsets topic, which Spark's own connector reads."""

    connector: str | None = "spark-kafka"

    def __init__(self, bus: KafkaBus) -> None:
        self._bus = bus

    def events(self, session: SparkSession, settings: Settings, *, after: int, defer: bool) -> DataFrame:
        """Return both topics' records in no order; ``order`` makes events of a batch's records.

        A new checkpoint starts after the control event ``after`` and at the beginning of the offsets topic.
        That topic is compacted, and the newest report of a replica that the state already contains changes nothing.
        """
        address = self._bus.address
        starting = {
            address.events: {"0": offset_after(after)},
            address.offsets: {str(partition): EARLIEST for partition in range(self._bus.offsets_partitions)},
        }
        return (
            session.readStream.format("kafka")
            .option("kafka.bootstrap.servers", address.servers)
            .option("kafka.isolation.level", "read_committed")
            .option("kafka.max.poll.records", RECORDS_PER_POLL)
            .option("subscribe", f"{address.events},{address.offsets}")
            .option("startingOffsets", msgspec.json.encode(starting).decode())
            .option("maxOffsetsPerTrigger", settings.max_events_per_batch)
            .load()
            .select("topic", "partition", "offset", "value", unix_millis("timestamp"))
        )

    def order(self, spill_dir: Path) -> Order:
        claimed = functools.partial(newest_claims_of, str(self._bus.address))
        return functools.partial(merged, events_topic=self._bus.address.events, claimed=claimed, spill_dir=spill_dir)

    def place(self) -> Place:
        return placed

    def interval_ms(self, settings: Settings) -> int:
        """Gather events for a while, because Spark's connector cannot let heartbeats wait for a tick."""
        return settings.watermark_interval_ms

    def end_of(self, offset: Mapping[str, Any]) -> int | None:
        """Return the offset at which a batch ends in the events topic."""
        partitions = offset.get(self._bus.address.events)
        end = partitions.get("0") if isinstance(partitions, Mapping) else None
        return end if isinstance(end, int) else None

    def newest_end(self) -> int:
        return offset_after(self._bus.last_seq())

    def is_decided_to(self, end: int) -> bool:
        return self._bus.is_decided_to(end)


def merged(
    batches: Iterator[pa.RecordBatch],
    *,
    events_topic: str,
    claimed: Callable[[], Claims],
    spill_dir: Path | None = None,
) -> Iterator[pa.RecordBatch]:
    """Return a micro-batch's rows (topic, partition, offset, value, timestamp) as events, in bounded Arrow batches.

    Reports come right before the batch's last tick, or at the end if there is none. ``claimed`` returns the newest
    claims. It is called only if one of the events may be a claim or has a deadline. All rows are read before the first
    event is given. Past ``RAW_BYTES_IN_MEMORY`` their values wait in an unnamed file in ``spill_dir``.
    """
    with tempfile.SpooledTemporaryFile(RAW_BYTES_IN_MEMORY, dir=None if spill_dir is None else str(spill_dir)) as raws:
        rows = _Rows(events_topic, raws)
        for batch in batches:
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                rows.add(*row)
        if rows.control or rows.offsets:
            claims = claimed() if rows.ask_for_claims else Claims()
            yield from _slices(rows.ordered(), claims, raws)


class _Row(NamedTuple):
    """What determines a row's place in the order, and where its value waits."""

    is_control: bool
    partition: int
    offset: int
    ms: int
    start: int
    length: int


class _Rows:
    """The rows of a micro-batch, without their values, which go to a file."""

    def __init__(self, events_topic: str, raws: IO[bytes]) -> None:
        self._events_topic = events_topic
        self._raws = raws
        self._last_tick = -1
        self._end = 0
        self.control: list[_Row] = []
        self.offsets: list[_Row] = []
        self.ask_for_claims = False

    def add(self, topic: str, partition: int, offset: int, value: bytes | None, ms: int) -> None:
        raw = value or b""
        row = _Row(topic == self._events_topic, partition, offset, ms, self._end, len(raw))
        self._raws.write(raw)
        self._end += len(raw)
        if not row.is_control:
            self.offsets.append(row)
            return
        self.control.append(row)
        self.ask_for_claims = self.ask_for_claims or _asks_for_claims(raw)
        if offset > self._last_tick and _is_tick(raw):
            self._last_tick = offset

    def ordered(self) -> Iterator[tuple[int, _Row]]:
        """Return the rows in the order of events, each with its seq or the stand-in for it."""
        self.control.sort(key=_offset)
        self.offsets.sort()
        at = bisect_left(self.control, self._last_tick, key=_offset) if self._last_tick >= 0 else len(self.control)
        before = seq_of(self.control[at - 1].offset) if at else None
        for row in self.control[:at]:
            yield seq_of(row.offset), row
        for nth, row in enumerate(self.offsets, start=1):
            yield unplaced(nth) if before is None else before + nth, row
        for row in self.control[at:]:
            yield seq_of(row.offset), row


def _offset(row: _Row) -> int:
    return row.offset


def _asks_for_claims(raw: bytes) -> bool:
    return b"timeout_ms" in raw or is_started(raw)


def _is_tick(raw: bytes) -> bool:
    return b"tick" in raw and isinstance(decode(raw), Tick)


def _slices(ordered: Iterable[tuple[int, _Row]], claims: Claims, raws: IO[bytes]) -> Iterator[pa.RecordBatch]:
    """Cut after ``BYTES_PER_ARROW_BATCH``, or after one longer event."""
    entries: list[Entry] = []
    total = 0
    for seq, row in ordered:
        if entries and total + row.length > BYTES_PER_ARROW_BATCH:
            yield rows_of(entries)
            entries, total = [], 0
        total += row.length
        entries.append(_entry(seq, row, claims, raws))
    yield rows_of(entries)


def _entry(seq: int, row: _Row, claims: Claims, raws: IO[bytes]) -> Entry:
    raws.seek(row.start)
    raw = raws.read(row.length)
    if not row.is_control:
        return Entry(seq, raw, row.ms, False)
    return Entry(seq, raw, row.ms, row.offset in claims.offsets, found_ms(seq, claims.found))
