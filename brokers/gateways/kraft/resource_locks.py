"""Let requests that change what they have read come one after another."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from weakref import WeakValueDictionary

from brokers.gateways.kraft.engine_client import NoAnswerError

Resource = tuple[int, str]


class ResourceLocks:
    """Hold a lock for each resource that somebody holds or waits for, and none for any other."""

    def __init__(self, timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._locks: WeakValueDictionary[Resource, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def hold(self, resources: Iterable[Resource]) -> AsyncIterator[None]:
        """Wait until nobody else has any of ``resources``, then have them; who asked first is first.

        Raises ``NoAnswerError`` when that takes too long.
        """
        # In one order for all, so that no two wait for each other.
        locks = [self._locks.setdefault(resource, asyncio.Lock()) for resource in sorted(set(resources))]
        async with AsyncExitStack() as held:
            try:
                async with asyncio.timeout(self._timeout_ms / 1000):
                    for lock in locks:
                        await held.enter_async_context(lock)
            except TimeoutError as error:
                raise NoAnswerError(f"others were not done within {self._timeout_ms} ms") from error
            yield
