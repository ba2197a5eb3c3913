"""Requests that wait for a partition to change, as in Kafka's purgatory."""

import asyncio
from collections.abc import Iterable

# The requests that wait for one thing to change. They wake in the order in which they came.
Waiters = dict["asyncio.Future[bool]", None]


def wake(waiters: Waiters) -> None:
    """Wake all requests that wait, so that they check for changes."""
    for future in waiters:
        _settle(future, True)


def _settle(future: "asyncio.Future[bool]", changed: bool) -> None:
    if not future.done():
        future.set_result(changed)


class Purgatory:
    """A limit on how many requests wait at once. A request beyond it is answered without a wait."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        # How many requests wait now.
        self.waiting = 0

    async def change(self, waited: Iterable[Waiters], deadline: float) -> bool:
        """Wait until one of ``waited`` changes. Return False if ``deadline`` (loop time) comes first."""
        loop = asyncio.get_running_loop()
        if loop.time() >= deadline or self.waiting >= self._limit:
            return False
        places = list(waited)
        future: asyncio.Future[bool] = loop.create_future()
        timer = loop.call_at(deadline, _settle, future, False)
        self.waiting += 1
        for place in places:
            place[future] = None
        try:
            return await future
        finally:
            timer.cancel()
            self.waiting -= 1
            for place in places:
                place.pop(future, None)
