"""The ticker: ticks on the bus as long as this job is the one that decides."""

import threading
from typing import NamedTuple

import msgspec

from bus.clock import StallWatch, steady_ms
from bus.interface import Bus, Claim
from state.events import SessionsExtended, Tick
from streaming.engine_clock import EngineClock

# A stall shorter than this does not extend sessions.
LATENESS_MS_MIN = 500


class Sleep(NamedTuple):
    """A sleep of the ticker, by the steady clock."""

    began_ms: int
    ended_ms: int

    @property
    def lasted_ms(self) -> int:
        return self.ended_ms - self.began_ms


class Ticker(threading.Thread):
    """The thread that puts a tick on the bus every ``idle_ms``, and every ``busy_ms`` while log ends are reported.

    The next tick after a stall says how long the ticker was held up: the process was stopped, or the machine stalled or
    was suspended. Brokers may have been held up with it, and their heartbeats may still be on their way.

    It ends by itself if another job claims the controller, or if it fails; ``error`` is then the cause.
    """

    def __init__(self, bus: Bus, claim: Claim, clock: EngineClock, busy_ms: int, idle_ms: int) -> None:
        super().__init__(name="isrflow-ticker", daemon=True)
        self.error: Exception | None = None
        self._bus = bus
        self._controller_epoch = claim.controller_epoch
        self._clock = clock
        self._busy_ms = busy_ms
        self._idle_ms = idle_ms
        # When the thread last woke up, and its longest sleep since ``longest_sleep`` was last asked.
        self._woke_ms = steady_ms()
        self._longest_sleep = Sleep(self._woke_ms, self._woke_ms)
        self._stopping = threading.Event()
        self._publishing = threading.Lock()

    def run(self) -> None:
        try:
            self._tick_until_stopped()
        except Exception as error:
            self.error = error

    def _tick_until_stopped(self) -> None:
        looked_at = self._bus.last_seq()
        self._tick(0)
        ticked_ms, stall = steady_ms(), StallWatch(self._busy_ms, LATENESS_MS_MIN)
        late_ms = 0
        while not self._stopping.wait(self._busy_ms / 1000):
            if self._bus.claimed_epoch() != self._controller_epoch:
                return
            late_ms += stall.end()
            now_ms = steady_ms()
            self._longest_sleep = self._longest_until(now_ms)
            self._woke_ms = now_ms
            if now_ms - ticked_ms >= self._idle_ms or self._bus.log_ends_came(looked_at):
                # Read before the tick, so that a report that comes between the two is not missed.
                looked_at = self._bus.last_seq()
                self._tick(late_ms)
                ticked_ms = now_ms
                late_ms = 0

    def _tick(self, late_ms: int) -> None:
        with self._publishing:
            time_ms = self._clock.read_ms()
            events: list[Tick | SessionsExtended] = [Tick(time_ms=time_ms, controller_epoch=self._controller_epoch)]
            if late_ms:
                held_up = SessionsExtended(time_ms=time_ms, controller_epoch=self._controller_epoch, by_ms=late_ms)
                events.insert(0, held_up)
            seq = self._bus.publish_own([msgspec.json.encode(event) for event in events])
            self._clock.note_tick(seq, time_ms)

    def decided(self, through: int, clock_ms: int) -> None:
        """Note how far the rules have decided, and their clock after that.

        This never runs while a tick is published.
        """
        with self._publishing:
            self._clock.decided(through, clock_ms)

    def tell_undecided(self, after: int) -> None:
        """Publish a tick that says that nothing after ``after`` is decided. Raises ``FencedError``."""
        with self._publishing:
            time_ms = self._clock.read_ms()
            tick = Tick(time_ms=time_ms, controller_epoch=self._controller_epoch, decided_seq=after)
            seq = self._bus.tell_undecided(self._controller_epoch, msgspec.json.encode(tick))
            if seq is not None:
                self._clock.note_tick(seq, time_ms)

    def longest_sleep(self) -> Sleep:
        """Return the thread's longest sleep since this was last asked. One that has not ended yet ends now."""
        now_ms = steady_ms()
        longest, self._longest_sleep = self._longest_until(now_ms), Sleep(now_ms, now_ms)
        return longest

    def _longest_until(self, now_ms: int) -> Sleep:
        return max(self._longest_sleep, Sleep(self._woke_ms, now_ms), key=lambda one: one.lasted_ms)

    def stop(self) -> None:
        self._stopping.set()
