"""One rule for a bus that is out of reach: try again after a growing pause, and give up after a bound."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from bus.interface import BusError, TrimmedError

logger = structlog.get_logger()

_PAUSE_MIN_MS, _PAUSE_MAX_MS = 50, 2_000

T = TypeVar("T")


async def retry(call: Callable[[], Awaitable[T]], unreachable_max_ms: int) -> T:
    """Return the result of ``call``, which is repeated while it raises ``BusError``.

    Raises the last ``BusError`` once ``unreachable_max_ms`` have passed since the first one. Raises ``TrimmedError``
    at once, because decisions that were removed do not come back.
    """
    loop = asyncio.get_running_loop()
    give_up_s, pause_ms = None, _PAUSE_MIN_MS
    while True:
        try:
            return await call()
        except TrimmedError:
            raise
        except BusError as error:
            if give_up_s is None:
                give_up_s = loop.time() + unreachable_max_ms / 1000
            if loop.time() >= give_up_s:
                raise
            logger.warning("bus out of reach", why=str(error))
        await asyncio.sleep(pause_ms / 1000)
        pause_ms = min(2 * pause_ms, _PAUSE_MAX_MS)
