"""Load before the claim what the first query would otherwise load."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import structlog
from pyspark.sql import SparkSession

from streaming.job_errors import JobError
from streaming.late_workers import LATE_WORKERS_MAX, LateWorkers
from streaming.session import SPARK_ERRORS

# Spark waits forever for a worker that has connected, and for executors that have gone again.
WARM_UP_TIMEOUT_S = 180.0

logger = structlog.get_logger("isrflow.job")


def warm_up(session: SparkSession, timeout_s: float = WARM_UP_TIMEOUT_S) -> None:
    """Load Python workers, and the state store's native library.

    Before the claim, a failure to load them disturbs no other job. After the claim, the first batch is quicker.
    Raises one of ``SPARK_ERRORS``, and ``JobError`` if no worker answers in ``timeout_s``.
    """
    late = LateWorkers()
    while not _runs_worker(session, timeout_s, late):
        logger.warning(
            "a Python worker was too slow to connect to Spark; starting another one",
            attempt=late.count,
            attempts_max=LATE_WORKERS_MAX,
        )
    jvm: Any = session.sparkContext._jvm
    jvm.org.rocksdb.RocksDB.loadLibrary()


def _runs_worker(session: SparkSession, timeout_s: float, late: LateWorkers) -> bool:
    """Run one Python worker. Return False if it is too slow to connect to Spark, and another one may be tried."""
    with _cancelling(session, timeout_s) as is_cancelled:
        try:
            session.range(1).mapInArrow(lambda batches: batches, "id LONG").collect()
        except SPARK_ERRORS as error:
            if is_cancelled.is_set():
                raise JobError(f"no Python worker of Spark's answered in {timeout_s:.0f} s") from error
            if not late.allow_another_start(str(error)):
                raise
            return False
    return True


@contextlib.contextmanager
def _cancelling(session: SparkSession, timeout_s: float) -> Iterator[threading.Event]:
    """Cancel all jobs, and set the event, if the block takes longer than ``timeout_s``."""
    is_cancelled = threading.Event()

    def cancel() -> None:
        is_cancelled.set()
        session.sparkContext.cancelAllJobs()

    timer = threading.Timer(timeout_s, cancel)
    timer.daemon = True
    timer.start()
    try:
        yield is_cancelled
    finally:
        timer.cancel()
