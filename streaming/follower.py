"""A standby's query, which takes in the state that the active engine writes, and decides once this job has claimed.

The problem: a standby on another machine has no checkpoint of the active engine. It could start a query from the state
on the bus when it takes over. But starting a query, reading the state and storing it takes two to three seconds, and
producers wait that long.

The insight: the query need not wait for the claim. The state on the bus is pages, which change with each commit, and
the operator can store a page as well as it can step a shard. So the query runs while the job stands by. Its source
gives pages. The claim changes nothing in Spark: after the note of it (``claim_note``), the same source gives events.

    stands by:   pages ──► operator stores them ──► nothing to commit
    decides:     events ─► operator steps shards ─► decisions

The checkpoint is the standby's own, so it follows only if it has the checkpoint's lock. On one machine the active
engine has that lock, and the standby can use its checkpoint. A new claim may come from a job that waits for the lock on
this machine. So the standby then stops following. It begins again when that job has decided and the lock has been free
for a while, because a job that needs the lock takes it before it decides.

The query's offsets look like an engine's, but before the first decision no offset tells how the state came about. So
the checkpoint is vouched for (``checkpoint.vouch``) after that decision. If the job is killed before, the next one
moves the checkpoint aside.

Rejected: keeping only the pages in memory, ready for the start of a query. That would save a tenth of the time, because
most of it starts the query.
"""

import contextlib
import shutil
from collections.abc import Sequence
from pathlib import Path

import structlog
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from bus.clock import steady_ms
from bus.interface import Bus, Claim, OvertakenError
from conf.private_dir import private_dir
from conf.settings import Settings
from streaming.checkpoint import BUS_FILE, SPARK_FILE, move_aside, vouch
from streaming.checkpoint_lock import CheckpointLock
from streaming.checkpoint_place import checkpoint_of, files_place
from streaming.claim_note import ClaimNote, write_note
from streaming.job_errors import JobError
from streaming.query import Commit, start_query, stop_between_batches
from streaming.query_failure import cause_in
from streaming.session import SPARK_ERRORS, reason_of
from streaming.sources.interface import source_of

# A job that decides without the lock takes it within a fifth of a second when it becomes free.
FREE_MS = 3_000
# After an error.
PAUSE_MS = 30_000
# Between two looks that are further apart, the lock may have been taken and freed again.
LOOK_LATE_MS = 1_000

# In a checkpoint that began with pages. Without the name of its bus, it has nothing else.
PAGES_FILE = "pages"

logger = structlog.get_logger("isrflow.job")


class Follower:
    """The query of a job that stands by, with its checkpoint's lock. The note of the claim goes into ``directory``.

    Make this when the settings have been found to fit the layout of the state.
    """

    def __init__(
        self, session: SparkSession, bus: Bus, settings: Settings, lock: CheckpointLock, directory: Path
    ) -> None:
        self._session = session
        self._bus = bus
        self._settings = settings
        self._lock = lock
        self._place = files_place(settings)
        self._file = directory / "claim_note"
        # Whether this bus gives pages, and a query's checkpoint can be kept on this machine.
        self._can_follow = source_of(bus).has_pages and checkpoint_of(settings) == self._place
        self._layouts = bus.layouts()
        self._query: StreamingQuery | None = None
        self._commit_decisions: Commit | None = None
        self._is_vouched = False
        # The newest claim that was seen, and an event after it. Its job has the lock before it decides that event.
        self._epoch = -1
        self._seq_after_claim = 0
        # Since when the lock is free; None if it is not.
        self._free_since_ms: int | None = None
        self._looked_ms = self._paused_until_ms = steady_ms()

    def look(self, epoch: int) -> None:
        """Start to follow if that is possible now. Stop if ``epoch``, the newest claimed one, is new, or on an error.

        Call this often while the job stands by. The start and the stop of a query take a moment, in which the job
        cannot see whether the active engine lives.
        """
        if epoch != self._epoch:
            self._pause(0)
            self._epoch, self._seq_after_claim = epoch, self._bus.last_seq()
        if self._query is not None:
            if not self._query.isActive:
                logger.warning("the state is no longer followed", why=cause_in(str(self._query.exception() or "")))
                self._pause(PAUSE_MS)
        elif self._can_follow and self._is_lock_left() and self._has_state():
            self._start()

    def _is_lock_left(self) -> bool:
        """Return whether the lock has been free for so long that no job on this machine needs it."""
        now_ms, before_ms = steady_ms(), self._looked_ms
        self._looked_ms = now_ms
        if now_ms < self._paused_until_ms or not self._lock.is_free():
            self._free_since_ms = None
        elif self._free_since_ms is None or now_ms - before_ms > LOOK_LATE_MS:
            self._free_since_ms = now_ms
        return self._free_since_ms is not None and now_ms - self._free_since_ms >= FREE_MS

    def _has_state(self) -> bool:
        """Return whether there is a state, laid out as the settings say, on which the active engine has decided."""
        return self._bus.decided_seq() >= self._seq_after_claim > 0 and self._bus.layouts() == self._layouts

    def _start(self) -> None:
        try:
            if not self._lock.take():
                return
            self._make_room()
            self._file.unlink(missing_ok=True)
            self._query = start_query(self._session, self._bus, self._settings, {}, self._commit, claim_note=self._file)
            logger.info("following the state", controller_epoch=self._epoch)
        except OvertakenError:
            self._pause(0)
        except (OSError, *SPARK_ERRORS) as error:
            logger.warning("the state cannot be followed, so taking over will take longer", why=reason_of(error))
            self._pause(PAUSE_MS)

    def _make_room(self) -> None:
        """Make a directory for the checkpoint. Delete one that only took in pages, and move any other one aside."""
        if (self._place / PAGES_FILE).exists() and not (self._place / BUS_FILE).exists():
            shutil.rmtree(self._place)
        elif (self._place / SPARK_FILE).exists():
            move_aside(self._place, self._check_epoch, why="the state on the bus is followed")
        private_dir(self._place)
        (self._place / PAGES_FILE).touch()

    def _check_epoch(self) -> None:
        """Raise ``OvertakenError`` if another job has claimed, because it may use the checkpoint already."""
        if self._bus.claimed_epoch() != self._epoch:
            raise OvertakenError(f"another job has claimed after controller epoch {self._epoch}")

    def _commit(self, outcomes: Sequence[bytes]) -> None:
        # A batch of pages has no outcomes.
        if self._commit_decisions is None or not outcomes:
            return
        self._commit_decisions(outcomes)
        if not self._is_vouched:
            vouch(self._place, self._bus)
            self._is_vouched = True

    @property
    def is_following(self) -> bool:
        """Whether a query takes in what the active engine writes."""
        return self._query is not None

    def is_ready(self) -> bool:
        """Return whether the query runs, on a state that is still laid out as it was."""
        return self._query is not None and self._query.isActive and self._bus.layouts() == self._layouts

    def let_decide(self, claim: Claim, commit: Commit) -> StreamingQuery:
        """Let the query decide after this job's claim, and return it. Raises ``JobError``."""
        assert self._query is not None, "only a query that runs can decide"
        self._commit_decisions = commit
        try:
            write_note(self._file, ClaimNote(claim.seq, self._bus.committed_seq()))
        except OSError as error:
            raise JobError(f"the query cannot be told of the claim: {error}") from error
        query, self._query = self._query, None
        return query

    def stop(self) -> None:
        """End the query, unless there is none or it decides."""
        if self._query is not None:
            with contextlib.suppress(*SPARK_ERRORS):
                stop_between_batches(self._query)
            # Spark may give up waiting for a batch.
            if not self._query.isActive:
                self._query = None

    def _pause(self, for_ms: int) -> None:
        """Stop, and release the checkpoint's lock. Follow again after ``for_ms`` at the earliest."""
        self.stop()
        if self._query is None:
            self._lock.release()
        self._free_since_ms = None
        self._paused_until_ms = steady_ms() + for_ms
