"""The bus on Kafka as a Spark source: both topics in one stream, put in one order batch by batch."""

from collections.abc import Callable, Iterator

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import unix_millis

from bus.interface import Entry
from bus.kafka.bus import KafkaBus
from bus.kafka.claims import Claims
from bus.kafka.places import offset_after, seq_of, unplaced
from bus.outsiders import is_started
from conf.settings import Settings
from state.event_text import decode
from state.events import Tick
from state.found import found_ms
from streaming.source import BYTES_PER_ARROW_BATCH, rows_of

EARLIEST = -2


def events(session: SparkSession, bus: KafkaBus, settings: Settings, *, after: int) -> DataFrame:
    """Read both topics with Spark's own source; ``in_order`` makes events of a batch's rows.

    A new checkpoint begins after the control event ``after``, and at the beginning of the offsets topic,
    which is compacted: the newest report of a replica that the state has already taken in changes nothing.
    """
    address = bus.address
    starting = {
        address.events: {"0": offset_after(after)},
        address.offsets: {str(partition): EARLIEST for partition in range(bus.offsets_partitions)},
    }
    return (
        session.readStream.format("kafka")
        .option("kafka.bootstrap.servers", address.servers)
        .option("kafka.isolation.level", "read_committed")
        .option("subscribe", f"{address.events},{address.offsets}")
        .option("startingOffsets", msgspec.json.encode(starting).decode())
        .option("maxOffsetsPerTrigger", settings.max_events_per_batch)
        .load()
        .select("topic", "partition", "offset", "value", unix_millis("timestamp"))
    )


def in_order(
    batches: Iterator[pa.RecordBatch], *, events_topic: str, claimed: Callable[[], Claims]
) -> Iterator[pa.RecordBatch]:
    """Give a micro-batch's rows (topic, partition, offset, value, timestamp) as events, in bounded Arrow batches.

    Offsets stand right before the batch's last tick, which is what makes something of them, or where there is
    none at the end. What they get is the seqs after the event before them; where that is the last one of an
    earlier batch, ``unplaced`` stands for it. A batch that comes again holds the same rows, so it gets the same.
    ``claimed`` gives the newest claims, and is asked where there may be one, or an event with a deadline.
    """
    columns = [[column.to_pylist() for column in batch.columns] for batch in batches]
    rows = [row for batch in columns for row in zip(*batch, strict=True)]
    control = sorted((offset, raw or b"", ms) for topic, _, offset, raw, ms in rows if topic == events_topic)
    offsets = sorted(
        (partition, offset, raw or b"", ms) for topic, partition, offset, raw, ms in rows if topic != events_topic
    )
    if not rows:
        return
    claims = claimed() if any(_asks_for_claims(raw) for _, raw, _ in control) else Claims()
    at = _place_of_offsets(control)
    before = seq_of(control[at - 1][0]) if at else None
    events = [
        Entry(seq_of(offset), raw, ms, offset in claims.offsets, found_ms(seq_of(offset), claims.found))
        for offset, raw, ms in control
    ]
    between = [
        Entry(unplaced(nth) if before is None else before + nth, raw, ms, False)
        for nth, (_, _, raw, ms) in enumerate(offsets, start=1)
    ]
    yield from _slices([*events[:at], *between, *events[at:]])


def _asks_for_claims(raw: bytes) -> bool:
    return b"timeout_ms" in raw or is_started(raw)


def _slices(entries: list[Entry]) -> Iterator[pa.RecordBatch]:
    """Cut after ``BYTES_PER_ARROW_BATCH``, or one event that is longer; Spark has no bound in bytes for this source."""
    start, total = 0, 0
    for place, entry in enumerate(entries):
        if place > start and total + len(entry.raw) > BYTES_PER_ARROW_BATCH:
            yield rows_of(entries[start:place])
            start, total = place, 0
        total += len(entry.raw)
    yield rows_of(entries[start:])


def _place_of_offsets(control: list[tuple[int, bytes, int]]) -> int:
    """Return how many control events stand before the offsets."""
    for place in range(len(control) - 1, -1, -1):
        if _is_tick(control[place][1]):
            return place
    return len(control)


def _is_tick(raw: bytes) -> bool:
    return b"tick" in raw and isinstance(decode(raw), Tick)
