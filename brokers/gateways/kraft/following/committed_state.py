"""The committed state, which a gateway reads at its start, and for the deletions whenever it begins to lead."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar

from brokers.engine.retry import retry
from brokers.gateways.kraft.following.deletions import Deletions, under_way
from bus.image import HeldState, read_image
from bus.interface import Bus

T = TypeVar("T")


class CommittedState:
    """The state on ``bus``. It is read in a thread of ``executor``, because that takes seconds in a large cluster."""

    def __init__(self, bus: Bus, executor: Executor, unreachable_max_ms: int) -> None:
        self._bus = bus
        self._executor = executor
        self._unreachable_max_ms = unreachable_max_ms

    async def read(self) -> HeldState:
        """Return the newest state. Raises ``BusError`` if the bus stays out of reach."""
        return await self._read(lambda held: held)

    async def keep_settled(self, deletions: Deletions) -> None:
        """Settle ``deletions`` with the newest state whenever they ask for it. Raises what ``read`` raises."""
        while True:
            await deletions.unsettled.wait()
            deletions.unsettled.clear()
            left = await self._read(lambda held: list(under_way(held)))
            # If they ask again meanwhile, they may have heard of deletions that this state lacks.
            if not deletions.unsettled.is_set():
                deletions.settle(left)

    async def _read(self, take: Callable[[HeldState], T]) -> T:
        """Return what ``take`` makes of the newest state. Run ``take`` in the thread that reads the state."""

        async def taken() -> T:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._executor, lambda: take(read_image(self._bus.image())))

        return await retry(taken, self._unreachable_max_ms)
