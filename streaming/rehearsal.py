"""A rehearsal: a small query on a bus of its own, so that a standby's first batch finds everything loaded.

A first batch loads Spark's planner, the source, the state store and several kinds of Python workers, which takes most
of the time of a start. The rehearsal starts the same query three times, in the three ways in which a job can start.
"""

import time
from pathlib import Path

import msgspec
import structlog
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from bus.clock import now_ms, steady_ms
from bus.interface import Bus, BusError
from bus.open_bus import open_bus
from conf.settings import Settings
from isrflow.contract import SQLITE
from sinks.decision_log import DecisionLog
from streaming.job_errors import JobError
from streaming.query import start_query, stop_between_batches
from streaming.query_failure import cause_in
from streaming.session import SPARK_ERRORS, reason_of

REHEARSAL_TIMEOUT_MS = 120_000
_FIRST = (
    b'{"kind":"broker_register","time_ms":1,"broker":1,"incarnation":"a"}',
    b'{"kind":"broker_heartbeat","time_ms":2,"broker":1,"broker_epoch":2,"want_fence":false}',
    b'{"kind":"create_topic","time_ms":3,"topic":"t","partitions":16,"replication_factor":1}',
)
_NEXT = (b'{"kind":"delete_topic","time_ms":4,"topic":"unknown"}',)
_POLL_S = 0.02

logger = structlog.get_logger("isrflow.job")


def rehearse(session: SparkSession, settings: Settings, directory: Path) -> None:
    """Decide a few events, with the ``settings`` of the job but on a bus and checkpoints in ``directory``.

    They stay there, because Spark maintains a checkpoint's state for a while after its query. A failure is only logged,
    because it only makes the take-over slower.
    """
    try:
        directory.mkdir()
        _decide(session, settings, directory)
    except (JobError, BusError, OSError, *SPARK_ERRORS) as error:
        logger.warning("the rehearsal failed, so taking over will take longer", why=reason_of(error))


def _decide(session: SparkSession, settings: Settings, directory: Path) -> None:
    url = f"{SQLITE}{directory / 'bus.db'}"
    bus = open_bus(url)
    try:
        # An empty bus, the checkpoint of a previous job, and a bus with a state but no checkpoint.
        for checkpoint, events in (("one", _FIRST), ("one", _NEXT), ("other", _NEXT)):
            place = {"bus": url, "checkpoint_dir": str(directory / checkpoint)}
            epoch = bus.claim("rehearsal", {}, now_ms()).controller_epoch
            last = bus.publish_own(events)
            write = DecisionLog(bus, epoch).write
            query = start_query(session, bus, msgspec.structs.replace(settings, **place), {}, write)
            try:
                _await_decided(bus, query, last)
            finally:
                stop_between_batches(query)
    finally:
        bus.close()


def _await_decided(bus: Bus, query: StreamingQuery, seq: int) -> None:
    deadline_ms = steady_ms() + REHEARSAL_TIMEOUT_MS
    while bus.decided_seq() < seq:
        if not query.isActive:
            raise JobError(f"a query on a bus of its own failed: {cause_in(str(query.exception() or ''))}")
        if steady_ms() > deadline_ms:
            raise JobError(f"a query on a bus of its own decided nothing in {REHEARSAL_TIMEOUT_MS // 1000} s")
        time.sleep(_POLL_S)
