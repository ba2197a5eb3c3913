"""Publish events in the order in which they are sent, even if the bus is out of reach for a while."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from brokers.engine.retry import retry
from bus.interface import Bus


class Publisher:
    """The one thread that publishes a broker's or gateway's events.

    The caller awaits each call to ``publish`` before the next one, so no batch overtakes the one before it. A batch may
    enter the bus twice, because a call whose answer is lost is repeated.
    """

    def __init__(self, bus: Bus, unreachable_max_ms: int, thread_name: str) -> None:
        self._bus = bus
        self._unreachable_max_ms = unreachable_max_ms
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=thread_name)

    async def publish(self, events: Callable[[], Sequence[bytes]]) -> int | None:
        """Publish what ``events`` returns, and return the last ``seq``; None when there is nothing to publish.

        ``events`` is called before each attempt, so that events withdrawn meanwhile are left out.
        Raises ``BusError`` when the bus stays out of reach.
        """
        loop = asyncio.get_running_loop()

        async def attempt() -> int | None:
            batch = events()
            return await loop.run_in_executor(self._thread, self._bus.publish, batch) if batch else None

        return await retry(attempt, self._unreachable_max_ms)

    def close(self) -> None:
        """Wait for the call that is under way, if any."""
        self._thread.shutdown(wait=True)
