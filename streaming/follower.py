"""A standby's query, which takes in the state that the active engine writes, and decides once this job has claimed.

The problem: a standby on another machine has no checkpoint of the active engine. It could start a query from the state
on the bus when it takes over. But to start a query, to read the state and to store it takes two to three seconds, and
a producer waits for them.

The insight: the query need not wait for the claim. The state on the bus is pages, which change with each commit, and
the operator can store a page as well as it can step a shard. So the query runs while the job stands by. Its source
gives pages. The claim changes nothing in Spark: after the note of it (``handover``) the same source gives events.

    stands by:   pages ──► operator stores them ──► nothing to commit
    decides:     events ─► operator steps shards ─► decisions

The checkpoint is the standby's own, so it follows only if it has the checkpoint's lock. On one machine the active
engine has that lock, and its checkpoint is at hand as it is. A new claim may be of a job that waits for the lock on
this machine. So the standby then gives up what it has, and begins again when the lock has been free for a while.

The query's offsets look like an engine's, but before the first decision no offset tells how the state came about. So
the checkpoint is vouched for (``checkpoint.vouch``) after that decision. If the job is killed before, the next one
moves the checkpoint aside.

Rejected: to keep only the pages in memory, ready for the start of a query. Of those seconds that would save a tenth,
because most of them start the query.
"""

import contextlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import structlog
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from bus.clock import steady_ms
from bus.interface import Bus, Claim
from conf.private_dir import private_dir
from conf.settings import Settings
from streaming.checkpoint import move_aside, vouch
from streaming.checkpoint_lock import CheckpointLock
from streaming.checkpoint_place import checkpoint_of, files_place
from streaming.handover import Handover, hand_over
from streaming.job_errors import JobError
from streaming.query import start_query, stop_between_batches
from streaming.query_failure import cause_in
from streaming.session import SPARK_ERRORS, reason_of
from streaming.sources.interface import source_of

# A job that decides without the lock takes it within a fifth of a second when it becomes free.
FREE_MS = 3_000
# After an error.
PAUSE_MS = 30_000

logger = structlog.get_logger("isrflow.job")


class Follower:
    """The query of a job that stands by, with its checkpoint's lock. The note of the claim goes into ``directory``."""

    def __init__(
        self, session: SparkSession, bus: Bus, settings: Settings, lock: CheckpointLock, directory: Path
    ) -> None:
        self._session = session
        self._bus = bus
        self._settings = settings
        self._lock = lock
        self._place = files_place(settings)
        self._file = directory / "handover"
        self._query: StreamingQuery | None = None
        # Of the job that decided when the query started.
        self._epoch = 0
        self._layouts = 0
        self._commit_decisions: Callable[[Iterable[bytes]], None] | None = None
        self._is_vouched = False
        # The next look may take the lock from this time on, if it has been free until then.
        self._from_ms = steady_ms() + FREE_MS

    def look(self, epoch: int) -> None:
        """Start to follow if that is possible now. Stop if ``epoch``, the newest claimed one, is new, or on an error.

        Call this often while the job stands by.
        """
        if self._query is None:
            if self._may_take_lock() and self._bus.decided_seq() > 0 and self._lock.take():
                self._start(epoch)
        elif epoch != self._epoch:
            self._pause(FREE_MS)
        elif not self._query.isActive:
            logger.warning("the state is no longer followed", why=cause_in(str(self._query.exception() or "")))
            self._pause(PAUSE_MS)

    def _may_take_lock(self) -> bool:
        """Say whether a checkpoint could be kept here, and no other job has used its place for a while."""
        if not source_of(self._bus).has_pages or checkpoint_of(self._settings) != self._place:
            return False
        if not self._lock.is_free():
            self._from_ms = max(self._from_ms, steady_ms() + FREE_MS)
        return steady_ms() >= self._from_ms

    def _start(self, epoch: int) -> None:
        self._epoch, self._layouts = epoch, self._bus.layouts()
        try:
            if self._place.exists():
                move_aside(self._place, lambda: None, why="the state on the bus is followed")
            private_dir(self._place)
            self._file.unlink(missing_ok=True)
            self._query = start_query(self._session, self._bus, self._settings, {}, self._commit, handover=self._file)
            logger.info("following the state", controller_epoch=epoch)
        except (OSError, *SPARK_ERRORS) as error:
            logger.warning("the state cannot be followed, so taking over will take longer", why=reason_of(error))
            self._pause(PAUSE_MS)

    def _commit(self, outcomes: Sequence[bytes]) -> None:
        # A batch of pages has no outcomes.
        if self._commit_decisions is None or not outcomes:
            return
        self._commit_decisions(outcomes)
        if not self._is_vouched:
            vouch(self._place, self._bus, self._settings.shuffle_partitions)
            self._is_vouched = True

    def is_ready(self) -> bool:
        """Say whether the query runs, on a state that is still laid out as it was."""
        return self._query is not None and self._query.isActive and self._bus.layouts() == self._layouts

    def hand_over(self, claim: Claim, commit: Callable[[Iterable[bytes]], None]) -> StreamingQuery:
        """Let the query decide after this job's claim, and return it. Raises ``JobError``."""
        assert self._query is not None, "only a query that runs is handed over"
        self._commit_decisions = commit
        try:
            hand_over(self._file, Handover(claim.controller_epoch, claim.seq, self._bus.decided_seq()))
        except OSError as error:
            raise JobError(f"the query cannot be told of the claim: {error}") from error
        query, self._query = self._query, None
        return query

    def stop(self) -> None:
        """End the query, unless there is none or it was handed over."""
        if self._query is not None:
            with contextlib.suppress(*SPARK_ERRORS):
                stop_between_batches(self._query)
            self._query = None

    def _pause(self, for_ms: int) -> None:
        """Stop, and let others have the checkpoint's lock for a while."""
        self.stop()
        self._lock.release()
        self._from_ms = steady_ms() + for_ms
