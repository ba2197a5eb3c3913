"""Watch whether decisions can be read and put on disk, because a gateway that does not learn of them must not lead."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor

from brokers.engine.follow import looked
from bus.clock import steady_ms

# The disk may take this many times as long as the bus, so that a disk that is only slow moves no leader.
DISK_TIMEOUTS = 3


class CallWatch:
    """A watch on calls: since when they have failed or hung."""

    def __init__(self, stalled_after_s: float) -> None:
        self._stalled_after_ms = stalled_after_s * 1000
        self._since_ms: int | None = None

    def begin(self) -> None:
        """Note that a call begins. If calls before it have failed, the time still counts from the first of them."""
        if self._since_ms is None:
            self._since_ms = steady_ms()

    def succeeded(self) -> None:
        """Note that a call returned, with or without news."""
        self._since_ms = None

    @property
    def is_stalled(self) -> bool:
        """Whether no call has succeeded for too long."""
        since_ms = self._since_ms
        return since_ms is not None and steady_ms() - since_ms > self._stalled_after_ms


class ReadWatch(CallWatch):
    """A watch on the calls that read the bus, and on the ``commits`` of what was read."""

    def __init__(self, blind_after_s: float) -> None:
        super().__init__(blind_after_s)
        self.commits = CallWatch(DISK_TIMEOUTS * blind_after_s)

    @property
    def why(self) -> str | None:
        """Why this process does not learn who leads; None if it does."""
        if super().is_stalled:
            return "no decision can be read"
        return "the disk hangs" if self.commits.is_stalled else None

    @property
    def is_stalled(self) -> bool:
        """Whether no decision has come through for too long."""
        return self.why is not None

    async def look(self, thread: Executor, changed: Callable[[], bool], poll_interval_ms: int) -> bool:
        """Ask in ``thread`` whether a bus has changed. If so, the time counts until the caller has read the news."""
        self.begin()
        news = await asyncio.get_running_loop().run_in_executor(thread, looked, changed, poll_interval_ms)
        if not news:
            self.succeeded()
        return news
