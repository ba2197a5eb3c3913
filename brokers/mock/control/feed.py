"""Follow the decision log: the state as last committed, then every decision after it, in order."""

import asyncio
from collections.abc import Callable, Sequence

import structlog

from brokers.image import decisions_of
from brokers.mock.settings import Settings
from brokers.reaching import RETRY_MS
from bus.interface import Bus, BusError, TrimmedError
from state.decisions import AnyDecision, decode

logger = structlog.get_logger()

CHUNK = 1_000
_AFTER_ALL_OF = 2**31

Heard = Callable[[Sequence[AnyDecision]], None]


class Feed:
    """Hand every decision to ``heard``, once, in (seq, index) order; those that wait come together, up to ``CHUNK``."""

    def __init__(self, bus: Bus, heard: Heard, settings: Settings) -> None:
        self._bus = bus
        self._heard = heard
        self._poll = settings.decisions_poll_interval_ms / 1000
        self._unreachable_max = settings.bus_unreachable_max_ms / 1000
        self._after = (0, -1)

    def start(self) -> None:
        """Take the image in; what follows it comes with ``run``."""
        image = self._bus.image()
        self._heard(list(decisions_of(image)))
        self._after = (image.seq, _AFTER_ALL_OF)

    async def run(self) -> None:
        """Follow until cancelled; raises ``BusError`` when the bus stays out of reach."""
        loop = asyncio.get_running_loop()
        give_up, pause_ms = None, RETRY_MS[0]
        while True:
            try:
                if not (self._bus.changed() or give_up is not None):
                    await asyncio.sleep(self._poll)
                    continue
                await self._catch_up()
                give_up, pause_ms = None, RETRY_MS[0]
            except TrimmedError:
                # What was missed does not come again: only a new start, from the state as it is, helps.
                raise
            except BusError as error:
                give_up = give_up or loop.time() + self._unreachable_max
                if loop.time() >= give_up:
                    raise
                logger.warning("bus out of reach", why=str(error))
                await asyncio.sleep(pause_ms / 1000)
                pause_ms = min(2 * pause_ms, RETRY_MS[1])

    async def _catch_up(self) -> None:
        """Read on to the end; between chunks others get their turn."""
        while chunk := self._bus.decisions(self._after, CHUNK):
            self._heard([decode(decided.body) for decided in chunk])
            self._after = (chunk[-1].seq, chunk[-1].idx)
            await asyncio.sleep(0)
            if len(chunk) < CHUNK:
                return
