"""Locks that make requests run one after another if they change what they have read.

The requests of two gateways are kept apart by the quorum epoch in their events (``Context.ask_as_admin``). A request
that gave up frees its locks, though the engine may still do it: its client was not told that it was done.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from weakref import WeakValueDictionary

from brokers.gateways.shared.engine_client import NoAnswerError

Resource = tuple[int, str]


class ResourceLocks:
    """A lock for each resource that a request holds or waits for."""

    def __init__(self, timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._locks: WeakValueDictionary[Resource, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def hold(self, resources: Iterable[Resource]) -> AsyncIterator[None]:
        """Hold all ``resources`` while the block runs; requests get them in the order of asking.

        Raises ``NoAnswerError`` when the wait takes too long.
        """
        # Always in the same order, so that no two requests wait for each other.
        locks = [self._locks.setdefault(resource, asyncio.Lock()) for resource in sorted(set(resources))]
        async with AsyncExitStack() as held:
            try:
                async with asyncio.timeout(self._timeout_ms / 1000):
                    for lock in locks:
                        await held.enter_async_context(lock)
            except TimeoutError as error:
                raise NoAnswerError(f"other requests were not done within {self._timeout_ms} ms") from error
            yield
