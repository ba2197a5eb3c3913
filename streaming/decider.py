"""The query, and once more from the bus's state where its checkpoint cannot be gone on from."""

import contextlib
from collections.abc import Callable, Iterable

import structlog
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from bus.interface import Bus, BusError, DivergedError
from conf.settings import Settings
from streaming.checkpoint import has_batches, move_aside, settle
from streaming.checkpoint_place import check_usable, checkpoint_of
from streaming.deadlines import LateError
from streaming.ends import JobError
from streaming.query import start_query, stop_between_batches
from streaming.query_failure import LATE_WORKERS_MAX, bus_error_in, cause_in, has_late_worker, lack_in
from streaming.session import SPARK_ERRORS

log = structlog.get_logger("isrflow.job")


class Decider:
    """Hold the one query that decides, from the start of the block, on a checkpoint that is settled, to its end.

    A checkpoint is a cache of the bus. Where a query fails on one that has batches, it may be damaged, or what it
    holds be decided otherwise by now (another version took over between the bus's commit and Spark's): it is moved
    aside, once a run, and another query goes on from what the bus has. What a new checkpoint cannot mend is raised.
    """

    def __init__(
        self, session: SparkSession, bus: Bus, settings: Settings, write: Callable[[Iterable[bytes]], None]
    ) -> None:
        self._session = session
        self._bus = bus
        self._settings = settings
        self._write = write
        self._checkpoint = checkpoint_of(settings)
        self._query: StreamingQuery | None = None
        self._not_written: Exception | None = None
        self._is_second = False
        self._late_workers = 0
        self._went_on = False
        self._decided_seq = 0

    def __enter__(self) -> "Decider":
        self._start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        # What ended the job counts, and not how its query took that.
        with contextlib.suppress(*SPARK_ERRORS) if kind else contextlib.nullcontext():
            if self._query is not None:
                stop_between_batches(self._query)

    def _start(self) -> None:
        self._not_written = None
        self._went_on = has_batches(self._checkpoint)
        self._decided_seq = self._bus.decided_seq()
        try:
            self._query = start_query(self._session, self._bus, self._settings, {}, self._commit)
        except (PySparkException, Py4JJavaError) as error:
            self._go_on_after(str(error))

    def _commit(self, outcomes: Iterable[bytes]) -> None:
        try:
            self._write(outcomes)
        except Exception as error:
            # Of what goes through Spark only a text comes back.
            self._not_written = error
            raise

    def is_active(self) -> bool:
        """Say whether the query runs. Raises one of ``SPARK_ERRORS`` where Spark itself is gone."""
        return self._query is not None and self._query.isActive

    def go_on(self) -> None:
        """Begin once more after the query ended, where that can be.

        Raises ``FencedError`` where another job took over, ``LateError`` where the job has to claim once more,
        ``BusError`` or ``JobError`` where it ends.
        """
        error = None if self._query is None else self._query.exception()
        self._go_on_after("" if error is None else str(error))

    def _go_on_after(self, told: str) -> None:
        if self._is_worth_another_start(told):
            log.warning(
                "a Python worker was too slow to connect to Spark; starting the query again",
                attempt=self._late_workers,
                attempts_max=LATE_WORKERS_MAX,
            )
            self._start_settled(cause_in(told), aside=False)
            return
        cause = self._mendable_cause(told)
        # One that failed on a new checkpoint before it decided anything would fail on the next one too.
        if self._is_second or not (self._went_on or self._bus.decided_seq() > self._decided_seq):
            raise JobError(f"the query failed: {cause}")
        self._is_second = True
        self._start_settled(cause, aside=True)

    def _is_worth_another_start(self, told: str) -> bool:
        """Count a failure that a busy machine causes. Nothing is wrong with the checkpoint or the bus."""
        if self._not_written is not None or not has_late_worker(told):
            return False
        has_decided = self._bus.decided_seq() > self._decided_seq
        self._late_workers = 1 if has_decided else self._late_workers + 1
        return self._late_workers <= LATE_WORKERS_MAX

    def _start_settled(self, cause: str, *, aside: bool) -> None:
        try:
            if aside:
                move_aside(self._checkpoint, why="the query failed on it", cause=cause)
            settle(self._checkpoint, self._bus)
        except OSError as error:
            raise JobError(f"the query failed: {cause}; and its checkpoint cannot be moved aside: {error}") from error
        self._start()

    def _mendable_cause(self, told: str) -> str:
        """Say why the query failed; raises where a new checkpoint would not help."""
        error = self._not_written
        if isinstance(error, LateError | BusError) and not isinstance(error, DivergedError):
            raise error
        cause = str(error) if error is not None else cause_in(told)
        if (of_bus := bus_error_in(told)) and error is None:
            raise BusError(of_bus)
        if lack := lack_in(f"{told}\n{cause}"):
            raise JobError(f"the query failed: {lack}: {cause}")
        # What is lost for others too shows here.
        self._bus.last_seq()
        try:
            check_usable(self._checkpoint)
        except OSError as lost:
            raise JobError(f"the query failed: {cause}; the checkpoint cannot be used: {lost}") from lost
        return cause
