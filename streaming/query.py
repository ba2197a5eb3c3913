"""The query: bus, fan-out, shards, decisions."""

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, GroupedData, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from bus.interface import Bus, Image
from conf.settings import Settings
from conf.spark_settings import is_local
from streaming import shard
from streaming.checkpoint import has_batches
from streaming.checkpoint_place import Checkpoint, checkpoint_of
from streaming.keys import Keys, spark_keys
from streaming.query_failure import PY4J_ERROR, without_stacks
from streaming.sources.interface import source_of

QUERY_NAME = "isrflow"
BATCH_END_TIMEOUT_S = 10.0
BATCH_END_POLL_S = 0.005
# Takes the shard outcomes of a batch.
Commit = Callable[[Sequence[bytes]], object]


class FailedBatchError(Exception):
    """Spark could not run a batch."""


def start_query(
    session: SparkSession,
    bus: Bus,
    settings: Settings,
    overrides: dict[str, str],
    commit: Commit,
    *,
    defer: bool = True,
    claim_note: Path | None = None,
) -> StreamingQuery:
    """Start the one streaming query, which calls ``commit`` with the shard outcomes of each batch.

    ``defer`` lets heartbeats and offsets wait for the next tick. Replay turns it off, because a log may have no ticks.
    If the checkpoint has no batch yet, the query starts from the state on the bus and the event after it. If it has
    one, its state must be spread over as many partitions as the settings say. With ``claim_note`` the checkpoint must
    have none, and the query takes in the bus's state until that file has been written (``Source.events``).
    """
    checkpoint = checkpoint_of(settings)
    image = Image(0, []) if claim_note or has_batches(checkpoint) else bus.image()
    # An executor on another machine cannot read a file of the driver's.
    spool_dir = _local_dir(session) if is_local(str(session.sparkContext.master)) else None
    source = source_of(bus)
    keys = spark_keys(session, settings.shards, settings.shuffle_partitions)
    events = source.events(
        session, settings, keys=keys, after=image.seq, defer=defer, spool_dir=spool_dir, claim_note=claim_note
    )
    if settings.shuffle_partitions == 1:
        # With one partition from source to sink, Spark needs no exchange, and a batch is one stage instead of two.
        events = events.coalesce(1)
    operator = shard.ShardOperator(settings.shards, settings.pages, settings.policy, overrides)
    initial = _initial_state(session, image, keys)
    outcomes = events.groupBy("shard").transformWithState(operator, shard.SCHEMA, "Update", "None", initial)
    interval_ms = source.interval_ms(settings) if defer else None
    return _started(outcomes, checkpoint, commit, interval_ms)


def _local_dir(session: SparkSession) -> Path:
    return Path(session.sparkContext.getConf().get("spark.local.dir") or tempfile.gettempdir())


def _started(outcomes: DataFrame, checkpoint: Checkpoint, commit: Commit, interval_ms: int | None) -> StreamingQuery:
    def each_batch(batch: DataFrame, batch_id: int) -> None:
        commit(outcomes_of(batch))

    for form in ("callSite.short", "callSite.long"):
        # Otherwise Spark searches its stack for each RDD that it makes, which is a sixth of planning a batch.
        outcomes.sparkSession.sparkContext.setLocalProperty(form, QUERY_NAME)
    writer = (
        outcomes.writeStream.queryName(QUERY_NAME)
        .outputMode("update")
        .option("checkpointLocation", str(checkpoint))
        .foreachBatch(each_batch)
    )
    if interval_ms is not None:
        writer = writer.trigger(processingTime=f"{interval_ms} milliseconds")
    return writer.start()


def outcomes_of(batch: DataFrame) -> list[bytes]:
    """Collect the shard outcomes of a batch.

    Raises ``FailedBatchError`` with Spark's text, without its stacks. Spark recognizes by the error's text that a stop
    has interrupted a batch. The text must name py4j's class, and must not be long, because Spark's pattern would
    overflow Java's stack. (StreamExecution.isInterruptionException)
    """
    try:
        # One action only, because each further one runs the stateful plan again. No ``select``, because planning it
        # takes 5 ms: Spark looks up the names in it in all jars.
        found: list[bytes] = batch.toArrow().column("outcome").to_pylist()
    except Py4JJavaError as error:
        raise FailedBatchError(f"{PY4J_ERROR}: {without_stacks(str(error))}") from None
    return found


def stop_between_batches(query: StreamingQuery) -> None:
    """Stop the query between two batches. A batch that takes too long is cut off, as by a kill.

    If Spark had to interrupt a batch, it might wait until its own time-out and then fail.
    """
    deadline = time.monotonic() + BATCH_END_TIMEOUT_S
    while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline:
        time.sleep(BATCH_END_POLL_S)
    query.stop()


def _initial_state(session: SparkSession, image: Image, keys: Keys) -> GroupedData | None:
    if not image.pages:
        return None
    rows = shard.initial_rows(image.pages, keys.shards)
    return session.createDataFrame(rows, shard.INITIAL_SCHEMA).groupBy("shard")
