"""The ticker: time on the bus, as long as this job is the one that decides."""

import threading

import msgspec

from isrflow.bus.embedded import now_ms
from isrflow.bus.interface import Bus, BusError


class Ticker(threading.Thread):
    """Put a tick on the bus every ``idle_ms``, and every ``busy_ms`` while offsets come.

    Ends by itself when another job has claimed the controller, or when the bus fails; ``error`` then
    says how.
    """

    def __init__(self, bus: Bus, controller_epoch: int, busy_ms: int, idle_ms: int) -> None:
        super().__init__(name="isrflow-ticker", daemon=True)
        self.error: BusError | None = None
        self._bus = bus
        self._controller_epoch = controller_epoch
        self._busy_s = busy_ms / 1000
        self._idle_ms = idle_ms
        self._stopping = threading.Event()

    def run(self) -> None:
        try:
            self._tick_until_stopped()
        except BusError as error:
            self.error = error

    def _tick_until_stopped(self) -> None:
        last_seq, last_ms = self._tick()
        while not self._stopping.wait(self._busy_s):
            if self._bus.claimed_epoch() != self._controller_epoch:
                return
            if now_ms() - last_ms >= self._idle_ms or self._bus.offsets_came(last_seq):
                last_seq, last_ms = self._tick()

    def _tick(self) -> tuple[int, int]:
        time_ms = now_ms()
        return self._bus.publish([msgspec.json.encode({"kind": "tick", "time_ms": time_ms})]), time_ms

    def stop(self) -> None:
        self._stopping.set()
