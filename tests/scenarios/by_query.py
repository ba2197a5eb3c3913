"""Play a story through the job's Spark query, optionally with a restart from its checkpoint in the middle.

Decisions do not depend on how a log is cut into batches. But when a block shows the state, it must be read before
the next block is decided. So blocks are published together up to the next one that shows the state.
"""

import itertools
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from bus.embedded import EmbeddedBus
from bus.image import view_of_image
from bus.interface import Decided, Entry, Image
from conf.settings import Settings
from sinks.decision_log import DecisionLog
from streaming.late_workers import LateWorkers
from streaming.query import start_query, stop_between_batches
from tests.scenarios.by_operators import DECISIONS_MAX
from tests.scenarios.telling import Scene

WAIT_TIMEOUT_S = 120.0
POLL_S = 0.02
# Each look at the query asks the JVM, and several stories look at once.
POLLS_PER_LOOK = 25
# Blocks that are published together mostly make one batch. Longer ones are cut in the middle of a block.
EVENTS_PER_BATCH = 24


class ByQuery:
    """A player that plays the whole story at once, and then returns it block by block.

    ``session`` must have no other query of the job at the same time. The query has ``partitions`` shuffle
    partitions. With ``restarts`` it is stopped before the middle block, and continues from its checkpoint. Raises
    ``TimeoutError`` if an event is not decided within ``WAIT_TIMEOUT_S``, and ``AssertionError`` if the query did not
    restart from the checkpoint.
    """

    def __init__(
        self, session: SparkSession, directory: Path, scenes: Sequence[Scene], *, partitions: int, restarts: bool
    ) -> None:
        self._views: dict[int, dict[str, Any]] = {}
        self._seq = 0
        bus = EmbeddedBus(directory / "bus.db")
        run = _Run(session, bus, directory / "checkpoint", partitions)
        try:
            self._play(scenes, bus, run, restart_block(scenes) if restarts else None)
            self._decided = bus.decisions((0, -1), DECISIONS_MAX)
        finally:
            run.stop()
            bus.close()

    def _play(self, scenes: Sequence[Scene], bus: EmbeddedBus, run: "_Run", restart_before: int | None) -> None:
        for block, scene in enumerate(scenes):
            if block == restart_before:
                run.through(bus.last_seq())
                run.restart()
            bus.load([Entry(event.seq, event.raw) for event in scene.written])
            last = bus.last_seq()
            if scene.introduced or scene.described:
                run.through(last)
                self._views[last] = view_of_image(bus.image())
        run.through(bus.last_seq())
        if restart_before is not None:
            run.check_continued()

    def play(self, events: Sequence[tuple[int, bytes]]) -> Sequence[Decided]:
        first, self._seq = events[0][0], events[-1][0]
        return [one for one in self._decided if first <= one.seq <= self._seq]

    def view(self) -> dict[str, Any]:
        return self._views[self._seq]


def restart_block(scenes: Sequence[Scene]) -> int:
    """Return the block, counted from 0, before which to restart: the middle one of those with events."""
    with_events = [block for block, scene in enumerate(scenes) if scene.written]
    assert len(with_events) > 1, "a story of one block has no middle"
    return with_events[len(with_events) // 2]


class _Run:
    """A query that can be restarted from its checkpoint."""

    def __init__(self, session: SparkSession, bus: EmbeddedBus, checkpoint: Path, partitions: int) -> None:
        self._session = session
        self._session.conf.set("spark.sql.shuffle.partitions", str(partitions))
        self._bus = bus
        self._checkpoint = checkpoint
        self._settings = Settings(
            checkpoint_dir=str(checkpoint),
            shards=4,
            pages=3,
            shuffle_partitions=partitions,
            max_events_per_batch=EVENTS_PER_BATCH,
        )
        self._restarted_after = -1
        self._late_workers = LateWorkers()
        self._query = self._started(bus)

    def _started(self, bus: EmbeddedBus) -> StreamingQuery:
        self._read_from, self._decided_seq = bus, self._bus.decided_seq()
        log = DecisionLog(self._bus, self._bus.claimed_epoch())
        return start_query(self._session, bus, self._settings, {}, log.write, defer=False)

    def through(self, last: int) -> None:
        """Wait until event ``last`` is decided."""
        self._wait_until(lambda: self._bus.decided_seq() >= last, f"event {last} was not decided")

    def restart(self) -> None:
        """Stop between two batches, and start again from the checkpoint alone."""
        # Wait for Spark, because it notes the end of a batch only after the bus has the batch's decisions.
        self._wait_until(lambda: self._batch("commits") == self._batch("offsets"), "a batch did not end")
        self._query.stop()
        self._restarted_after = self._batch("commits")
        assert self._restarted_after >= 0, "nothing was in the checkpoint"
        self._query = self._started(_BusWithoutImage(self._bus.path))

    def check_continued(self) -> None:
        """Check that the batch numbers continue across the restart."""
        assert 0 <= self._restarted_after < self._batch("offsets"), "the checkpoint was not gone on from"

    def _batch(self, log: str) -> int:
        """Return the newest batch in one of Spark's logs, or -1."""
        return max((int(path.name) for path in (self._checkpoint / log).glob("[0-9]*")), default=-1)

    def _wait_until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + WAIT_TIMEOUT_S
        for poll in itertools.count(1):
            if condition():
                return
            if poll % POLLS_PER_LOOK == 0 and not self._query.isActive:
                if not self._is_late():
                    raise TimeoutError(f"{what}: {self._query.exception()}")
                self._query = self._started(self._read_from)
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what}: {self._query.exception()}")
            time.sleep(POLL_S)

    def _is_late(self) -> bool:
        """Return whether an ended query must start again because one of Spark's workers was late on a busy machine."""
        if self._bus.decided_seq() > self._decided_seq:
            return False
        return self._late_workers.allow_another_start(str(self._query.exception()))

    def stop(self) -> None:
        stop_between_batches(self._query)


class _BusWithoutImage(EmbeddedBus):
    """A bus without an image, because a query that continues from its checkpoint never reads it."""

    def image(self) -> Image:
        raise AssertionError("the query began from the bus's state instead of from its checkpoint")
