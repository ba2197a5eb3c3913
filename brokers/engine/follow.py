"""The way in which brokers and gateways follow the decision log: catch up, then look for news until the end."""

import asyncio
import time
from collections.abc import Callable
from typing import NoReturn, Protocol

from brokers.engine.retry import retry
from bus.changes import changes_by

# A reader that stops waits for its thread at most this long.
LOOK_MS = 50


class DecisionFeed(Protocol):
    """A reader's place in the decision log, and what it does with the decisions that come after it."""

    async def has_news(self) -> bool:
        """Return whether there may be decisions that were not handled yet. Raises ``BusError``."""

    async def catch_up(self) -> None:
        """Handle all decisions up to the present end, in order. Raises ``BusError``.

        The next call does not repeat what was handled before an error.
        """


def looked(changed: Callable[[], bool], poll_interval_ms: int) -> bool:
    """Ask repeatedly, in this thread, whether a bus has changed; give up after ``LOOK_MS``.

    Asking takes less time than going from the event loop to a thread and back.
    """
    return changes_by(changed, time.monotonic() + LOOK_MS / 1000, min(poll_interval_ms, LOOK_MS))


async def follow(feed: DecisionFeed, poll_interval_ms: int, unreachable_max_ms: int) -> NoReturn:
    """Handle decisions until cancelled.

    Raises ``BusError`` when the bus stays out of reach, ``TrimmedError`` when decisions were removed unread.
    """
    is_behind = False

    async def take_in_news() -> bool:
        # ``has_news`` shows news only once. If the attempt then fails, the next one catches up without asking.
        nonlocal is_behind
        was_behind, is_behind = is_behind, True
        news = was_behind or await feed.has_news()
        if news:
            await feed.catch_up()
        is_behind = False
        return news

    while True:
        if not await retry(take_in_news, unreachable_max_ms):
            await asyncio.sleep(poll_interval_ms / 1000)
