"""Remove old events and decisions from the bus, in a thread beside the job's work."""

import threading
import time

import structlog

from bus.interface import Bus, BusError

INTERVAL_S = 30.0
# After each slice others may write for at least as long as it took, so no writer waits for two slices.
PAUSE_S_MIN = 0.02

logger = structlog.get_logger("isrflow.retention")


class Retention(threading.Thread):
    """The thread that trims the bus slice by slice down to what it must keep, every ``interval_s``.

    After a failure it logs the error, and tries again after the next interval. Other parts of the job notice a bus that
    is not usable.
    """

    def __init__(self, bus: Bus, retain: int, interval_s: float = INTERVAL_S) -> None:
        super().__init__(name="isrflow-retention", daemon=True)
        self._bus = bus
        self._retain = retain
        self._interval_s = interval_s
        self._stopping = threading.Event()

    def run(self) -> None:
        while not self._stopping.wait(self._interval_s):
            try:
                self._trim()
            except BusError as error:
                logger.warning("cannot remove old events from the bus now; trying again later", why=str(error))

    def _trim(self) -> None:
        while not self._stopping.is_set():
            begun_s = time.monotonic()
            if not self._bus.trim(self._retain):
                return
            self._stopping.wait(max(PAUSE_S_MIN, time.monotonic() - begun_s))

    def stop(self) -> None:
        self._stopping.set()
