"""What a gateway reads of the committed state: at its start, and for its deletions when it begins to lead."""

import asyncio
from concurrent.futures import Executor
from functools import partial

from brokers.engine.retry import retry
from brokers.gateways.kraft.deletions import Deletions
from bus.image import Held, read_image
from bus.interface import Bus


class CommittedState:
    """The state on ``bus``. It is read in a thread of ``executor``, because that takes seconds in a large cluster."""

    def __init__(self, bus: Bus, executor: Executor, unreachable_max_ms: int) -> None:
        self._bus = bus
        self._executor = executor
        self._unreachable_max_ms = unreachable_max_ms

    async def read(self) -> Held:
        """Return the newest state. Raises ``BusError`` if the bus stays out of reach."""

        async def held() -> Held:
            return await asyncio.get_running_loop().run_in_executor(self._executor, partial(_held, self._bus))

        return await retry(held, self._unreachable_max_ms)

    async def keep_settled(self, deletions: Deletions) -> None:
        """Say which deletions are under way whenever this gateway begins to lead. Raises as ``read`` does."""
        while True:
            await deletions.unsettled.wait()
            deletions.unsettled.clear()
            held = await self.read()
            # If the gateway has begun to lead once more, this state may lack deletions that it heard of meanwhile.
            if not deletions.unsettled.is_set():
                deletions.settle(held)


def _held(bus: Bus) -> Held:
    return read_image(bus.image())
