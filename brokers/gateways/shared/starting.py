"""The common steps of the processes of gateways of either kind."""

import gc

from brokers.engine.retry import retry
from bus.interface import Bus
from bus.open_bus import open_bus

# A full garbage collection walks all objects of a large cluster's image. That takes half a second, in which no broker
# is heard, and one large request would cause several. Garbage in cycles is rare here and mostly from errors, and the
# frequent collections of young objects find it.
_GARBAGE_THRESHOLDS = (10_000, 20, 1_000)


def collect_rarely() -> None:
    """Make full garbage collections rare."""
    gc.set_threshold(*_GARBAGE_THRESHOLDS)


async def opened(url: str, unreachable_max_ms: int) -> Bus:
    """Open the bus, which may take a while to be in reach.

    A gateway never creates a bus, because no engine would decide on it, and brokers would wait in vain.
    """

    async def attempt() -> Bus:
        return open_bus(url, create=False)

    return await retry(attempt, unreachable_max_ms)
