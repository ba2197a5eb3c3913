"""Requests that wait for a partition to change: Kafka's purgatory."""

import asyncio
from collections.abc import Iterable
from typing import Protocol


class Waited(Protocol):
    """Something whose changes can be waited for; the first to wait is the first to wake."""

    waiters: "dict[asyncio.Future[bool], None]"


def wake(waited: Waited) -> None:
    """Wake all requests that wait, so that they check again."""
    for future in waited.waiters:
        _settle(future, True)


def _settle(future: "asyncio.Future[bool]", changed: bool) -> None:
    if not future.done():
        future.set_result(changed)


class Purgatory:
    """A bound on how many requests wait at once. Beyond it a request does not wait: it is answered at once."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._waiting = 0

    @property
    def waiting(self) -> int:
        """How many requests wait now."""
        return self._waiting

    async def change(self, waited: Iterable[Waited], deadline: float) -> bool:
        """Wait until one of ``waited`` changes; return False if ``deadline`` (loop time) comes first."""
        loop = asyncio.get_running_loop()
        if loop.time() >= deadline or self._waiting >= self._limit:
            return False
        places = list(waited)
        future: asyncio.Future[bool] = loop.create_future()
        timer = loop.call_at(deadline, _settle, future, False)
        self._waiting += 1
        for place in places:
            place.waiters[future] = None
        try:
            return await future
        finally:
            timer.cancel()
            self._waiting -= 1
            for place in places:
                place.waiters.pop(future, None)
