"""The query that decides, and what to do when it ends by itself.

The problem: a query ends with an error text, and the cause may be anything. Most causes would still be there after
another start: a full disk, a bus that is gone, a defect. But two kinds would not, and ending the job because of them
would stop all decisions.

    the query ended ──┬─ another job claimed, the bus failed, a batch was late ──► raise that error
                      ├─ Spark gave up on a slow Python worker ──► restart on its checkpoint, up to 10 times in a row
                      ├─ the machine lacks something, or the bus or the disk is gone ──► end the job
                      ├─ it had a checkpoint, or has decided something ──► move the checkpoint aside, once in 10 minutes
                      └─ otherwise ──► end the job

The insight: a checkpoint is a cache of the bus. If a query with a checkpoint fails, the checkpoint may be damaged. Or
its last batch would be decided differently now, because another version took over between the bus's commit and Spark's.
In both cases a start from the state on the bus helps, and loses nothing.

Once is enough. A query that also fails on a new checkpoint would fail on the next one too. But if it has decided on the
new one for some minutes, its failure has another cause, and the checkpoint may be moved aside again.

Rejected: recognizing the errors that mean damage, because Spark has too many of them. Instead the job recognizes the
causes that a new checkpoint would not remove.

Spark passes our own errors on as text, not as objects. So ``_commit`` keeps the object.
"""

import contextlib
import time
from collections.abc import Callable, Iterable
from pathlib import Path

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
from streaming.job_errors import JobError
from streaming.late_workers import LATE_WORKERS_MAX, LateWorkers
from streaming.query import Commit, start_query, stop_between_batches
from streaming.query_failure import bus_error_in, cause_in, lack_in
from streaming.session import SPARK_ERRORS

# A query that has decided for this long since its checkpoint was moved aside was helped by that.
WELL_AFTER_S = 600.0
logger = structlog.get_logger("isrflow.job")


class Decider:
    """The one query that decides, from the start of the block to its end, on a settled checkpoint.

    ``take_query`` returns a query that runs already.
    """

    def __init__(
        self,
        session: SparkSession,
        bus: Bus,
        settings: Settings,
        write: Callable[[Iterable[bytes]], None],
        check_held: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
        take_query: Callable[[Commit], StreamingQuery] | None = None,
    ) -> None:
        self._session = session
        # Read now, because Spark may be gone when the directories matter.
        self._spark_dirs = _dirs_of(session)
        self._bus = bus
        self._settings = settings
        self._write = write
        # Raises if another job has claimed.
        self._check_held = check_held
        # Returns the query that this job has run while it stood by.
        self._take_query = take_query
        self._checkpoint = checkpoint_of(settings)
        self._query: StreamingQuery | None = None
        self._not_written: Exception | None = None
        self._clock = clock
        # When the checkpoint was last moved aside, and what was decided by then.
        self._moved_aside: tuple[float, int] | None = None
        self._late_workers = LateWorkers()
        self._had_batches = False
        self._decided_seq = 0
        # The last event of which the log says that it was removed undecided.
        self._told_removed = 0

    def __enter__(self) -> "Decider":
        self._tell_removed()
        if self._take_query is None:
            self._start()
        else:
            self._had_batches, self._decided_seq = True, self._bus.decided_seq()
            self._query = self._take_query(self._commit)
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        # The error that ended the job is the one to report, not an error from stopping its query.
        with contextlib.suppress(*SPARK_ERRORS) if kind else contextlib.nullcontext():
            if self._query is not None:
                stop_between_batches(self._query)

    def _start(self) -> None:
        self._not_written = None
        self._had_batches = has_batches(self._checkpoint)
        self._decided_seq = self._bus.decided_seq()
        try:
            self._query = start_query(self._session, self._bus, self._settings, {}, self._commit)
        except (PySparkException, Py4JJavaError) as error:
            self._go_on_after(str(error))

    def _commit(self, outcomes: Iterable[bytes]) -> None:
        try:
            self._write(outcomes)
        except Exception as error:
            # Spark passes on only its text.
            self._not_written = error
            raise

    def is_active(self) -> bool:
        """Return whether the query runs. Raises one of ``SPARK_ERRORS`` if Spark itself is gone."""
        return self._query is not None and self._query.isActive

    def go_on(self) -> None:
        """Start the query again after it ended, if that can help.

        Raises ``FencedError`` if another job took over, ``LateError`` if the job must claim once more, and ``BusError``
        or ``JobError`` if the job must end.
        """
        error = None if self._query is None else self._query.exception()
        self._go_on_after("" if error is None else str(error))

    def _go_on_after(self, message: str) -> None:
        if self._is_worth_another_start(message):
            logger.warning(
                "a Python worker was too slow to connect to Spark; starting the query again",
                attempt=self._late_workers.count,
                attempts_max=LATE_WORKERS_MAX,
            )
            self._start_settled(cause_in(message), aside=False)
            return
        cause = self._mendable_cause(message)
        # A query that decided nothing on a new checkpoint would fail on the next one too.
        decided_seq = self._bus.decided_seq()
        if self._is_just_moved(decided_seq) or not (self._had_batches or decided_seq > self._decided_seq):
            raise JobError(f"the query failed: {cause}")
        self._moved_aside = self._clock(), decided_seq
        self._start_settled(cause, aside=True)

    def _is_just_moved(self, decided_seq: int) -> bool:
        """Return whether the checkpoint was moved aside, and the job has not decided for long since then."""
        if self._moved_aside is None:
            return False
        moved_s, moved_seq = self._moved_aside
        return decided_seq == moved_seq or self._clock() - moved_s < WELL_AFTER_S

    def _is_worth_another_start(self, message: str) -> bool:
        """Count a failure that only a busy machine causes. Return whether to start again on the same checkpoint."""
        if self._not_written is not None:
            return False
        if self._bus.decided_seq() > self._decided_seq:
            self._late_workers.reset()
        return self._late_workers.allow_another_start(message)

    def _tell_removed(self) -> None:
        """Log which events were removed undecided. They are lost, and the query goes on."""
        decided_seq = self._bus.decided_seq()
        through = self._bus.kept_after()
        if through > max(decided_seq, self._told_removed):
            self._told_removed = through
            logger.error("undecided events were removed", after=decided_seq, through=through)

    def _start_settled(self, cause: str, *, aside: bool) -> None:
        self._tell_removed()
        try:
            if aside:
                move_aside(self._checkpoint, self._check_held, why="the query failed on it", cause=cause)
            settle(self._checkpoint, self._bus, self._settings.shuffle_partitions, self._check_held)
        except OSError as error:
            raise JobError(f"the query failed: {cause}; its checkpoint cannot be moved aside: {error}") from error
        self._start()

    def _mendable_cause(self, message: str) -> str:
        """Return why the query failed. Raises if a new checkpoint would not help."""
        error = self._not_written
        if isinstance(error, LateError | BusError) and not isinstance(error, DivergedError):
            raise error
        cause = str(error) if error is not None else cause_in(message)
        if (of_bus := bus_error_in(message)) and error is None:
            raise BusError(of_bus)
        if lack := lack_in(f"{message}\n{cause}"):
            raise JobError(f"the query failed: {lack}: {cause}")
        # Spark's error does not name it.
        if deleted := next((one for one in self._spark_dirs if not one.is_dir()), None):
            raise JobError(f"the query failed: {deleted} was deleted, and Spark needs it while it runs: {cause}")
        # Raises if the bus itself is gone.
        self._bus.last_seq()
        try:
            check_usable(self._checkpoint)
        except OSError as lost:
            raise JobError(f"the query failed: {cause}; the checkpoint cannot be used: {lost}") from lost
        return cause


def _dirs_of(session: SparkSession) -> list[Path]:
    """Return where Spark has its blocks and sockets. Another program may delete them, such as a cleaner of ``/tmp``."""
    conf = session.sparkContext.getConf()
    settings = ("spark.local.dir", "spark.python.unix.domain.socket.dir")
    return [Path(directory) for setting in settings if (directory := conf.get(setting))]
