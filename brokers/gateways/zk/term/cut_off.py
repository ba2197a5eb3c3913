"""A limit on how long a term goes on without a connection to ZooKeeper."""

import asyncio
import contextlib
from collections.abc import Callable

import structlog

logger = structlog.get_logger()


class CutOff:
    """The time without a connection. ``back`` is called when there is one again, ``over`` when that takes too long.

    Both are called in the loop in which this object is made.
    """

    def __init__(self, timeout_ms: int, back: Callable[[], None], over: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._timeout_s = timeout_ms / 1000
        self._back = back
        self._over = over
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_now(self) -> bool:
        """Whether there is no connection now."""
        return self._timer is not None

    def hear(self, is_connected: bool) -> None:
        """Hear from any thread that a connection was lost, or that there is one again."""
        with contextlib.suppress(RuntimeError):
            # The loop may be closed when the client calls this.
            self._loop.call_soon_threadsafe(self._end if is_connected else self._begin)

    def stop(self) -> None:
        """Make no more calls."""
        self._back = self._over = lambda: None
        if self._timer is not None:
            self._timer.cancel()

    def _begin(self) -> None:
        if self._timer is None:
            logger.warning("the connection to ZooKeeper is lost", waits_s=self._timeout_s)
            self._timer = self._loop.call_later(self._timeout_s, self._over)

    def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            logger.info("connected to ZooKeeper again")
            self._back()
