"""Run a recorded log through the same query as a job does, in many small batches."""

import atexit
import contextlib
import functools
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from pyspark.sql.streaming.query import StreamingQuery

from bus.embedded import EmbeddedBus
from bus.image import view_of_image
from bus.interface import Entry, Image
from conf.settings import Settings
from conf.spark_settings import MASTER
from sinks.decision_log import DecisionLog
from streaming.late_workers import LateWorkers
from streaming.layout import laid_out
from streaming.local_dir import temporary_dir
from streaming.query import start_query, stop_between_batches
from streaming.session import SPARK_ERRORS, build_session, choose_java, reason_of
from streaming.spark_conf import default_master

EVENTS_PER_BATCH = 50
BATCHES_AT_MOST = 40
STALL_TIMEOUT_S = 240
DECISIONS_PER_READ = 10_000
_EMPTY = Image(0, [])


def replay(
    entries: Sequence[Entry],
    settings: Settings,
    overrides: dict[str, str],
    max_events: int | None = None,
    image: Image = _EMPTY,
) -> tuple[Iterable[bytes], dict[str, Any]]:
    """Decide ``entries`` by the Spark query, from the state in ``image``. Return the decisions and the state.

    ``max_events`` bounds a batch. Without it the log is cut into small batches, at most ``BATCHES_AT_MOST`` of them.
    Raises ``TimeoutError`` if the query makes no progress, and ``RuntimeError`` if Spark or the query fails.
    """
    # After the query has stopped, Spark may still write a snapshot of a state store, and make this directory again. So
    # its parent is a directory that goes when the process ends.
    with tempfile.TemporaryDirectory(dir=_local_dir(), prefix="replay-") as directory:
        bus = EmbeddedBus(Path(directory) / "bus.db")
        if image.pages:
            bus.commit(0, image.seq, [], laid_out(image, settings.shards, settings.pages).image.pages)
        bus.load(entries)
        some = max_events or max(EVENTS_PER_BATCH, -(-len(entries) // BATCHES_AT_MOST))
        settings = msgspec.structs.replace(
            settings,
            bus=f"sqlite:{bus.path}",
            checkpoint_dir=f"{directory}/checkpoint",
            max_events_per_batch=some,
            # Only this machine can read that bus.
            spark=settings.spark | {MASTER: default_master(settings)},
        )
        if entries:
            try:
                run_through(bus, settings, overrides, entries[-1].seq)
            except SPARK_ERRORS as error:
                raise RuntimeError(reason_of(error)) from error
        decisions, view = _decisions(bus), view_of_image(bus.image())
        bus.close()
    return decisions, view


@functools.cache
def _local_dir() -> Path:
    """Make a directory for Spark. Later replays use it too. It goes when this process ends, or after it was killed."""
    held = contextlib.ExitStack()
    atexit.register(held.close)
    return held.enter_context(temporary_dir())


def run_through(bus: EmbeddedBus, settings: Settings, overrides: dict[str, str], last_seq: int) -> None:
    choose_java()
    decisions = DecisionLog(bus, bus.claimed_epoch())
    session = build_session(settings, _local_dir())

    def start() -> StreamingQuery:
        return start_query(session, bus, settings, overrides, decisions.write, defer=False)

    late = LateWorkers()
    while True:
        decided_seq = bus.decided_seq()
        try:
            _await(bus, start(), last_seq)
            return
        except SPARK_ERRORS as error:
            # A query that has decided nothing can start again on its checkpoint.
            if bus.decided_seq() > decided_seq or not late.allow_another_start(str(error)):
                raise


def _await(bus: EmbeddedBus, query: StreamingQuery, last_seq: int) -> None:
    """Wait until the query has decided everything, and stop it."""
    try:
        decided, since = -1, time.monotonic()
        while (now := bus.decided_seq()) < last_seq:
            if now != decided:
                decided, since = now, time.monotonic()
            if time.monotonic() - since > STALL_TIMEOUT_S:
                raise TimeoutError(f"no event after seq {decided} was decided within {STALL_TIMEOUT_S} s")
            if query.awaitTermination(1):
                raise RuntimeError("the query ended before the log did")
    finally:
        stop_between_batches(query)


def _decisions(bus: EmbeddedBus) -> list[bytes]:
    bodies: list[bytes] = []
    after = (0, -1)
    while some := bus.decisions(after, DECISIONS_PER_READ):
        bodies += [decided.body for decided in some]
        after = (some[-1].seq, some[-1].idx)
    return bodies
