"""Events on their way from the reader to the bus: a queue with a bound on its bytes."""

import asyncio
from collections import deque
from collections.abc import Sequence

# What waits at most, unless a single operation exceeds it, and what is published at once. The loss of a broker with
# 60,000 replicas fits, so that the engine decides it in one batch.
BYTES_MAX = 32 << 20
BATCH_EVENTS = 1_000


class Pending:
    """The encoded events that are not published yet, in order."""

    def __init__(self) -> None:
        self._events: deque[bytes] = deque()
        self._bytes = 0
        self._changed = asyncio.Condition()
        self._is_closed = False

    async def put(self, events: Sequence[bytes]) -> None:
        """Add the events of an operation; wait while too many bytes wait already."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._bytes < BYTES_MAX)
            self._events.extend(events)
            self._bytes += sum(map(len, events))
            self._changed.notify_all()

    async def next_batch(self) -> list[bytes]:
        """Return the events that are to be published next, once there are some; none after the end."""
        async with self._changed:
            await self._changed.wait_for(lambda: bool(self._events) or self._is_closed)
            batch: list[bytes] = []
            size = 0
            while self._events and len(batch) < BATCH_EVENTS and (not batch or size < BYTES_MAX):
                event = self._events.popleft()
                batch.append(event)
                size += len(event)
            self._bytes -= size
            self._changed.notify_all()
            return batch

    async def close(self) -> None:
        """Note that no more events come."""
        async with self._changed:
            self._is_closed = True
            self._changed.notify_all()
