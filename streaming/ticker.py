"""The ticker: time on the bus, as long as this job is the one that decides."""

import threading
import time

import msgspec

from isrflow.bus.embedded import now_ms
from isrflow.bus.interface import Bus

# A busy machine makes every tick somewhat late; what is held against nobody is more than that.
LATENESS_MS_MIN = 500


class Ticker(threading.Thread):
    """Put a tick on the bus every ``idle_ms``, and every ``busy_ms`` while offsets come.

    When it was held up itself (the process stopped, the machine stalled or was suspended), it says so with
    the next tick: brokers may have been held up with it, and their heartbeats still be on their way. A wall clock
    that was set forward counts likewise, for it is what ticks tell.

    Ends by itself when another job has claimed the controller, or when it fails; ``error`` then says how.
    """

    def __init__(self, bus: Bus, controller_epoch: int, busy_ms: int, idle_ms: int) -> None:
        super().__init__(name="isrflow-ticker", daemon=True)
        self.error: Exception | None = None
        self._bus = bus
        self._controller_epoch = controller_epoch
        self._busy_ms = busy_ms
        self._idle_ms = idle_ms
        self._stopping = threading.Event()

    def run(self) -> None:
        try:
            self._tick_until_stopped()
        except Exception as error:
            self.error = error

    def _tick_until_stopped(self) -> None:
        last_seq, last_ms = self._tick(0)
        awake_s, awake_ms, late_ms = time.monotonic(), now_ms(), 0
        while not self._stopping.wait(self._busy_ms / 1000):
            if self._bus.claimed_epoch() != self._controller_epoch:
                return
            # One clock stands still while the machine is suspended, the other may be set back.
            gone_ms = max(int((time.monotonic() - awake_s) * 1_000), now_ms() - awake_ms)
            held_up_ms = gone_ms - self._busy_ms
            late_ms += held_up_ms if held_up_ms >= LATENESS_MS_MIN else 0
            awake_s, awake_ms = time.monotonic(), now_ms()
            if now_ms() - last_ms >= self._idle_ms or self._bus.offsets_came(last_seq):
                last_seq, last_ms = self._tick(late_ms)
                late_ms = 0

    def _tick(self, late_ms: int) -> tuple[int, int]:
        time_ms = now_ms()
        events: list[dict[str, str | int]] = [{"kind": "tick", "time_ms": time_ms}]
        if late_ms:
            events.insert(0, {"kind": "sessions_extended", "time_ms": time_ms, "by_ms": late_ms})
        return self._bus.publish_own([msgspec.json.encode(event) for event in events]), time_ms

    def stop(self) -> None:
        self._stopping.set()
