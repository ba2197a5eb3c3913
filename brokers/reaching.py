"""Ask the bus again while it is out of reach, for so long and no longer."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from bus.interface import BusError, TrimmedError

logger = structlog.get_logger()

RETRY_MS = (50, 2_000)

T = TypeVar("T")


async def reached(call: Callable[[], Awaitable[T]], unreachable_max_s: float) -> T:
    """Return what ``call`` comes to once it reaches the bus.

    Raises its ``BusError`` when that takes too long, and ``TrimmedError`` at once.
    """
    loop = asyncio.get_running_loop()
    give_up, pause_ms = loop.time() + unreachable_max_s, RETRY_MS[0]
    while True:
        try:
            return await call()
        except TrimmedError:
            raise
        except BusError as error:
            if loop.time() >= give_up:
                raise
            logger.warning("bus out of reach", why=str(error))
        await asyncio.sleep(pause_ms / 1000)
        pause_ms = min(2 * pause_ms, RETRY_MS[1])
