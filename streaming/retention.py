"""Keep the past on the bus for as long as the settings say, in a thread beside the job's work.

    older ◄──────────────────────────────────────────────────────────────────────────► newest
      removed   │   what changed the cluster, with its decisions   │   every event, and snapshots
        retention.ms, retention.events                   history.ms, history.events

Within the history the state can be rebuilt as of any event, from the nearest snapshot on. Before that, events and
decisions still explain what happened. Each step is one short transaction, so a kill between two of them loses nothing.
"""

import threading
import time
from collections.abc import Callable

import structlog

from bus.clock import now_ms
from bus.interface import Bus, BusError
from conf.settings import Settings

INTERVAL_S = 30.0
# After each slice others may write for at least as long as it took, so no writer waits for two slices.
PAUSE_S_MIN = 0.02
# The newest events stay whatever the clock says, because followers may be behind, and a clock may be wrong.
NEWEST_EVENTS = 1_000

logger = structlog.get_logger("isrflow.retention")


class Passes:
    """When the next pass is due: ``interval_s`` after the last one, or after the job began to decide.

    It outlives a claim, because a slow engine may claim more often than a pass is due.
    """

    def __init__(self, interval_s: float = INTERVAL_S) -> None:
        self._interval_s = interval_s
        self._due_s = time.monotonic() + interval_s

    def due_in_s(self) -> float:
        return max(0.0, self._due_s - time.monotonic())

    def ended(self) -> None:
        """Note that a pass has ended now."""
        self._due_s = time.monotonic() + self._interval_s


class Retention(threading.Thread):
    """The thread that takes snapshots, and removes old events slice by slice, whenever a pass is due.

    It logs an error of the bus, and tries again when the next pass is due. Other parts of the job notice a bus that
    cannot be used. After any other error it ends; ``error`` is then the cause.
    """

    def __init__(self, bus: Bus, settings: Settings, controller_epoch: int, passes: Passes) -> None:
        super().__init__(name="isrflow-retention", daemon=True)
        self.error: Exception | None = None
        self._bus = bus
        self._settings = settings
        self._controller_epoch = controller_epoch
        self._passes = passes
        self._stopping = threading.Event()

    def run(self) -> None:
        try:
            self._pass_until_stopped()
        except Exception as error:
            self.error = error

    def _pass_until_stopped(self) -> None:
        while not self._stopping.wait(self._passes.due_in_s()):
            self._try(self._take_snapshot, "cannot take a snapshot of the state now; trying again later")
            # Even without a snapshot, because the bus would grow until its disk is full.
            self._try(self._remove, "cannot remove old events from the bus now; trying again later")
            # A pass that was cut short goes on right after the next claim.
            if not self._stopping.is_set():
                self._passes.ended()

    def _try(self, step: Callable[[], None], failed: str) -> None:
        try:
            step()
        except BusError as error:
            logger.warning(failed, why=str(error))

    def _take_snapshot(self) -> None:
        snapshots = self._bus.snapshots()
        age_ms = now_ms() - snapshots[-1].time_ms if snapshots else -1
        # A snapshot from the future was taken by another clock.
        if not 0 <= age_ms < self._settings.history_snapshot_interval_ms:
            self._bus.keep_snapshot(self._controller_epoch)

    def _remove(self) -> None:
        settings = self._settings
        # A retention that is shorter than the history bounds the history too.
        events = min(settings.history_events, settings.retention_events)
        spans = [span for span in (settings.history_ms, settings.retention_ms) if span >= 0]
        newest = self._newest_end(min(NEWEST_EVENTS, events))
        history_end = min(newest, max(self._newest_end(events), self._end_before(min(spans, default=-1))))
        self._in_slices(lambda: self._bus.thin(history_end, settings.retention_events))
        retention_end = min(newest, self._end_before(settings.retention_ms))
        self._in_slices(lambda: self._bus.forget(retention_end))

    def _newest_end(self, events: int) -> int:
        """Return the seq after which the newest ``events`` events come."""
        return self._bus.last_seq() - events

    def _end_before(self, span_ms: int) -> int:
        """Return the seq of the newest event that is older than ``span_ms``; 0 if there is none, or no limit."""
        return self._bus.seq_at(now_ms() - span_ms) if span_ms >= 0 else 0

    def _in_slices(self, remove: Callable[[], int]) -> None:
        while not self._stopping.is_set():
            begun_s = time.monotonic()
            if not remove():
                return
            self._stopping.wait(max(PAUSE_S_MIN, time.monotonic() - begun_s))

    def stop(self) -> None:
        self._stopping.set()
