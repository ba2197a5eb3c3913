"""The decisions for a mock broker: first the state as last committed, then every decision after it, in order."""

import asyncio
from collections.abc import Callable, Sequence
from itertools import islice

from brokers.engine.alike_decisions import decoded, one_by_one
from brokers.engine.committed_state import decisions_of
from brokers.engine.follow import follow
from brokers.mock.settings import Settings
from bus.interface import AFTER_ALL_OF, Bus
from state.decisions import AnyDecision

CHUNK = 1_000

Apply = Callable[[Sequence[AnyDecision]], None]


class DecisionFeed:
    """A mock broker's place in the decision log.

    ``apply`` gets every decision once, in the order of (seq, index), and up to ``CHUNK`` waiting decisions in a call.
    """

    def __init__(self, bus: Bus, apply: Apply, settings: Settings) -> None:
        self._bus = bus
        self._apply = apply
        self._settings = settings
        self._after = (0, -1)

    def start(self) -> None:
        """Hand over the state as last committed; ``run`` continues from there."""
        image = self._bus.image()
        self._apply(list(decisions_of(image)))
        self._after = (image.seq, AFTER_ALL_OF)

    async def run(self) -> None:
        """Follow until cancelled.

        Raises ``BusError`` when the bus stays out of reach, and ``TrimmedError`` when decisions were removed unread.
        After that only a restart helps, because it begins with the state as committed by then.
        """
        await follow(self, self._settings.decisions_poll_interval_ms, self._settings.bus_unreachable_max_ms)

    async def has_news(self) -> bool:
        return self._bus.changed()

    async def catch_up(self) -> None:
        """Read to the end, and let other tasks run between chunks.

        A short read is not the end, because reads are bounded in bytes too. A read may also exceed ``CHUNK``, because a
        row may hold many decisions.
        """
        while rows := self._bus.decided_columns(self._after, CHUNK):
            decisions = one_by_one(given for row in rows for given in decoded(row))
            while chunk := list(islice(decisions, CHUNK)):
                self._apply(chunk)
                self._after = (chunk[-1].seq, chunk[-1].index)
                await asyncio.sleep(0)
