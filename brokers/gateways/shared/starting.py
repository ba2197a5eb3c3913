"""The common steps of the processes of gateways of either kind."""

from brokers.engine.retry import retry
from bus.interface import Bus
from bus.open_bus import open_bus


async def opened(url: str, unreachable_max_ms: int) -> Bus:
    """Open the bus, which may take a while to be in reach.

    A gateway never creates a bus, because no engine would decide on it, and brokers would wait in vain.
    """

    async def attempt() -> Bus:
        return open_bus(url, create=False)

    return await retry(attempt, unreachable_max_ms)
