"""The query: bus, fan-out, shards, decisions."""

import functools
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from pyspark.sql import DataFrame, GroupedData, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from bus.embedded import EmbeddedBus
from bus.interface import Bus, Image
from conf.settings import Settings
from streaming import fan_out, shard, source
from streaming.checkpoint import has_batches, shuffle_partitions
from streaming.checkpoint_place import checkpoint_of
from streaming.shared_keys import shared_keys

QUERY_NAME = "isrflow"
SPILL_DIR = "spilled"
BATCH_END_TIMEOUT_S = 10.0
BATCH_END_POLL_S = 0.005


def start_query(
    session: SparkSession,
    bus: Bus,
    settings: Settings,
    overrides: dict[str, str],
    commit: Callable[[Iterable[bytes]], object],
    *,
    wait: bool = True,
) -> StreamingQuery:
    """Start the one streaming query; ``commit`` gets each batch's shard outcomes.

    ``wait`` lets heartbeats and offsets ride along with the next tick, which a recorded log may lack.
    Where the checkpoint has no batch yet, the query starts from the state that the bus holds, and
    from the event after it.
    """
    checkpoint = checkpoint_of(settings)
    image = Image(0, []) if has_batches(checkpoint) else bus.image()
    local_dir = Path(session.sparkContext.getConf().get("spark.local.dir") or tempfile.gettempdir())
    spill_dir = local_dir / SPILL_DIR
    operator = shard.ShardOperator(settings.shards, settings.pages, settings.policy, overrides, spill_dir)
    events, in_order = _events(session, bus, settings, local_dir, after=image.seq, wait=wait)
    keys = shared_keys(session, shuffle_partitions(checkpoint) or settings.shuffle_partitions)
    spread = functools.partial(
        fan_out.fan_out, shards=settings.shards, shared_keys=keys, in_order=in_order, spill_dir=spill_dir
    )
    outcomes = (
        events.mapInArrow(spread, fan_out.SCHEMA)
        .groupBy("shard")
        .transformWithState(operator, shard.SCHEMA, "Update", "None", _initial_state(session, image))
    )

    def each_batch(batch: DataFrame, batch_id: int) -> None:
        # One action only: each further one would run the stateful plan again.
        commit(batch.select("outcome").toArrow().column(0).to_pylist())

    writer = (
        outcomes.writeStream.queryName(QUERY_NAME)
        .outputMode("update")
        .option("checkpointLocation", str(checkpoint))
        .foreachBatch(each_batch)
    )
    if wait and not isinstance(bus, EmbeddedBus):
        # Kafka's source cannot let some events wait for others: batches at a distance gather them instead.
        writer = writer.trigger(processingTime=f"{settings.watermark_interval_ms} milliseconds")
    return writer.start()


def stop_between_batches(query: StreamingQuery) -> None:
    """Stop where no batch is cut off; one that takes too long is cut off all the same, as by a kill.

    Spark may wait for a batch that it interrupts until its own time-out, and then fail.
    """
    deadline = time.monotonic() + BATCH_END_TIMEOUT_S
    while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline:
        time.sleep(BATCH_END_POLL_S)
    query.stop()


def _events(
    session: SparkSession, bus: Bus, settings: Settings, local_dir: Path, *, after: int, wait: bool
) -> tuple[DataFrame, fan_out.Ordered | None]:
    """Choose the source by the bus: its rows, and what puts them in order where they are in none."""
    if isinstance(bus, EmbeddedBus):
        events, in_order = _embedded(session, bus, settings, after=after, wait=wait), None
    else:
        # Kafka's client is loaded only where it is used.
        from bus.kafka.bus import KafkaBus
        from bus.kafka.claims import newest_claims_of
        from streaming import kafka_source

        assert isinstance(bus, KafkaBus)
        events = kafka_source.events(session, bus, settings, after=after)
        claimed = functools.partial(newest_claims_of, str(bus.address))
        in_order = functools.partial(
            kafka_source.in_order, events_topic=bus.address.events, claimed=claimed, spill_dir=local_dir
        )
    # With one partition all the way Spark needs no exchange, and a batch is one stage instead of two.
    return (events.coalesce(1) if settings.shuffle_partitions == 1 or in_order else events), in_order


def _embedded(session: SparkSession, bus: EmbeddedBus, settings: Settings, *, after: int, wait: bool) -> DataFrame:
    session.dataSource.register(source.BusSource)
    return (
        session.readStream.format(source.FORMAT)
        .option("path", str(bus.path.absolute()))
        .option("max_events", settings.max_events_per_batch)
        .option("max_bytes", settings.max_bytes_per_batch)
        .option("after", after)
        .option("wait", wait)
        .option("lock_timeout_s", settings.sqlite_lock_timeout_ms / 1_000)
        .load()
    )


def _initial_state(session: SparkSession, image: Image) -> GroupedData | None:
    if not image.pages:
        return None
    rows = [(page.shard, page.page, page.body) for page in image.pages]
    return session.createDataFrame(rows, shard.INITIAL_SCHEMA).groupBy("shard")
