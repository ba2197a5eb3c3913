"""When a standby takes over: as soon as no engine decides any more.

The problem: a job cannot know whether a process on another machine lives. It sees only the bus, late and through its
own pauses. And no clock is shared: times in events come from the other host.

The insight: a wrong guess is harmless, because the claim fences. The last job to claim decides, and the previous one
can write nothing more. So a wrong guess costs the seconds of a take-over, and what matters is only how rare it is.

    newest claim, ticks, commits ──► a sign of life: the silence begins again
    the newest claim has resigned, or there is none ──► take over at once
    its job had the checkpoint's lock on this machine, and it is free ──► take over at once
    silence ≥ controller.standby.timeout.ms ──► take over

Silence is measured on the standby's own steady clock, from the moment when it saw the last sign. An active engine
publishes a tick at least every ``tick.idle.interval.ms`` from its claim on, also while it starts or decides a long
batch. Time in which the standby itself stood still or waited for the bus is not silence, because it could see nothing.
Nor is a silence that ends with a wait for the bus's lock: the standby can read meanwhile, but an engine cannot write.

A standby claims only after the epoch whose silence it saw (``Bus.claim``). So of several standbys one takes over, and
the others see a new claim and keep waiting.
"""

import threading
from collections.abc import Callable

import structlog

from bus.clock import StallWatch, steady_ms
from bus.interface import Bus, OvertakenError
from conf.settings import Settings

LOOK_INTERVAL_MS = 100
# A busy machine wakes a sleeper somewhat late.
LATENESS_MS_MIN = 300

logger = structlog.get_logger("isrflow.job")


def silence_ms(settings: Settings) -> int:
    """Return how long a standby waits. An active engine shows itself once in each ``tick.idle.interval.ms``."""
    return max(settings.controller_standby_timeout_ms, 2 * settings.tick_idle_interval_ms)


class ActiveWatch:
    """A watch on the job that decides: which one it is, and for how long the bus has shown no new sign of it."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._tick = bus.newest_tick()
        self._sign = (bus.claimed_epoch(), bus.decided_seq())
        self._sign_ms = steady_ms()
        self._stall: StallWatch | None = None

    @property
    def epoch(self) -> int:
        """The newest claimed epoch that was seen."""
        return self._sign[0]

    def silent_ms(self) -> int:
        """Look at the bus, and return for how long it has shown no sign of life."""
        tick = self._bus.newest_tick()
        sign = (self._bus.claimed_epoch(), self._bus.decided_seq())
        # Before the first look no wait has begun: Spark's start takes long, and is no stall.
        late_ms = self._stall.end() if self._stall else 0
        self._stall = self._stall or StallWatch(LOOK_INTERVAL_MS, LATENESS_MS_MIN)
        if tick > self._tick or sign != self._sign:
            self._sign_ms = steady_ms()
        self._sign_ms += late_ms
        self._sign, self._tick = sign, max(tick, self._tick)
        return steady_ms() - self._sign_ms

    def was_locked_out(self) -> bool:
        """Wait until an engine can write to the bus. If that took time, begin the silence again, and return True."""
        wait = StallWatch(0, LATENESS_MS_MIN)
        self._bus.await_writable()
        was_locked = wait.end() > 0
        if was_locked:
            self._sign_ms, self._stall = steady_ms(), None
        return was_locked

    def has_resigned(self) -> bool:
        """Return whether no job holds the newest epoch, because its job has resigned or there was none yet."""
        return self._bus.resigned_epoch() == self.epoch


def wait_for_turn(
    watch: ActiveWatch,
    timeout_ms: int,
    stopping: threading.Event,
    meanwhile: Callable[[], None],
    is_dead: Callable[[int], bool],
) -> int | None:
    """Wait until no engine decides, and return the epoch to succeed; None if ``stopping`` is set before.

    ``meanwhile`` is called between two looks at the bus, and may raise. ``is_dead`` says whether the job of an epoch is
    known to have died.
    """
    seen = None
    while not stopping.is_set():
        silent_ms = watch.silent_ms()
        if watch.epoch != seen:
            seen = watch.epoch
            logger.info("standing by", controller_epoch=seen)
        if watch.has_resigned():
            logger.info("taking over, because no engine decides", controller_epoch=seen)
            return seen
        if is_dead(seen):
            logger.warning("taking over, because the active engine has died", controller_epoch=seen)
            return seen
        if silent_ms >= timeout_ms and not watch.was_locked_out():
            logger.warning(
                "taking over, because the active engine is silent", controller_epoch=seen, silent_ms=silent_ms
            )
            return seen
        meanwhile()
        stopping.wait(LOOK_INTERVAL_MS / 1000)
    return None


def claim_in_turn(
    watch: ActiveWatch,
    timeout_ms: int,
    stopping: threading.Event,
    meanwhile: Callable[[], None],
    claim: Callable[[int], None],
    is_dead: Callable[[int], bool],
) -> bool:
    """Stand by until ``claim`` has taken over from an epoch. Return False if ``stopping`` is set before that."""
    while (epoch := wait_for_turn(watch, timeout_ms, stopping, meanwhile, is_dead)) is not None:
        try:
            claim(epoch)
            return True
        except OvertakenError as error:
            logger.info("another standby was faster", why=str(error))
    return False
