"""Play a story through the Spark query of the job: each block is at least one micro-batch."""

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from isrflow.bus.embedded import EmbeddedBus
from isrflow.bus.image import view_of_image
from isrflow.bus.interface import Decided
from isrflow.conf.settings import Settings
from isrflow.sinks.decision_log import DecisionLog
from isrflow.streaming.query import start_query
from isrflow.streaming.session import build_session, choose_java
from tests.scenarios.by_operators import DECISIONS_MAX

DECIDE_TIMEOUT_S = 60.0
EVENTS_PER_BATCH = 12


class ByQuery:
    """Hold a bus, a checkpoint, and the query on them.

    ``restart_before`` names a block, counted from 0, before which the query is stopped, and started again
    from its checkpoint; None names no block. Blocks longer than ``EVENTS_PER_BATCH`` events are cut into
    several batches.
    """

    def __init__(self, directory: Path, restart_before: int | None) -> None:
        choose_java()
        self._settings = Settings(
            checkpoint_dir=str(directory / "checkpoint"), shards=4, pages=3, max_events_per_batch=EVENTS_PER_BATCH
        )
        self._bus = EmbeddedBus(directory / "bus.db")
        self._restart_before = restart_before
        self._blocks = 0
        self._query = self._started()

    def _started(self) -> StreamingQuery:
        session = build_session(self._settings, Path(tempfile.gettempdir()))
        log = DecisionLog(self._bus, self._bus.claimed_epoch())
        return start_query(session, self._bus, self._settings, {}, log.write, wait=False)

    def play(self, events: Sequence[tuple[int, bytes]]) -> Sequence[Decided]:
        if self._blocks == self._restart_before:
            self._query.stop()
            self._query = self._started()
        self._blocks += 1
        last = self._bus.publish([raw for _, raw in events])
        assert last == events[-1][0]
        deadline = time.monotonic() + DECIDE_TIMEOUT_S
        while self._bus.decided_seq() < last:
            if time.monotonic() > deadline or not self._query.isActive:
                raise TimeoutError(f"event {last} was not decided: {self._query.exception()}")
            time.sleep(0.01)
        return self._bus.decisions((events[0][0] - 1, 2**31), DECISIONS_MAX)

    def view(self) -> dict[str, Any]:
        return view_of_image(self._bus.image())

    def close(self) -> None:
        self._query.stop()
        self._bus.close()
