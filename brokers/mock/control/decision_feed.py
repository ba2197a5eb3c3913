"""Hand the decisions to a mock broker: the state as last committed, then every decision after it, in order."""

import asyncio
from collections.abc import Callable, Sequence

from brokers.engine.committed_state import decisions_of
from brokers.engine.follow import follow
from brokers.mock.settings import Settings
from bus.interface import Bus
from state.decisions import AnyDecision, decode

CHUNK = 1_000
_AFTER_ALL_OF = 2**31

Heard = Callable[[Sequence[AnyDecision]], None]


class DecisionFeed:
    """The place of a mock broker in the decision log.

    ``heard`` is called with every decision once, in (seq, index) order: with up to ``CHUNK`` waiting ones at a time.
    """

    def __init__(self, bus: Bus, heard: Heard, settings: Settings) -> None:
        self._bus = bus
        self._heard = heard
        self._settings = settings
        self._after = (0, -1)

    def start(self) -> None:
        """Hand over the state as last committed; ``run`` hands over what follows it."""
        image = self._bus.image()
        self._heard(list(decisions_of(image)))
        self._after = (image.seq, _AFTER_ALL_OF)

    async def run(self) -> None:
        """Follow until cancelled.

        Raises ``BusError`` when the bus stays out of reach, and ``TrimmedError`` when decisions were removed unread:
        then only a new start helps, from the state as it is by then.
        """
        await follow(self, self._settings.decisions_poll_interval_ms, self._settings.bus_unreachable_max_ms)

    async def has_news(self) -> bool:
        return self._bus.changed()

    async def catch_up(self) -> None:
        """Read on to the end; others get their turn between chunks."""
        while chunk := self._bus.decisions(self._after, CHUNK):
            self._heard([decode(decided.body) for decided in chunk])
            self._after = (chunk[-1].seq, chunk[-1].idx)
            await asyncio.sleep(0)
            if len(chunk) < CHUNK:
                return
