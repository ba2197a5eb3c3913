"""Follow the decision log into the metadata log."""

import asyncio
from collections.abc import Callable, Sequence
from itertools import groupby

import structlog

from isrflow.brokers.gateways.kraft.settings import Settings
from isrflow.brokers.gateways.kraft.storage import Storage
from isrflow.bus.interface import Bus, BusError, Decided, TrimmedError
from isrflow.state.decisions import AnyDecision, decode

logger = structlog.get_logger()

CHUNK = 5_000
RETRY_MS = (50, 2_000)
_AFTER_ALL_OF = 2**31

Heard = Callable[[Sequence[AnyDecision]], None]


async def follow(bus: Bus, storage: Storage, heard: Heard, caught_up: asyncio.Event, settings: Settings) -> None:
    """Write what each event's decisions come to, then hand them to ``heard``; set ``caught_up`` at the first end.

    Raises ``BusError`` when the bus stays out of reach, ``TrimmedError`` when decisions went that the log
    on disk lacks.
    """
    loop = asyncio.get_running_loop()
    poll_s, unreachable_max_s = settings.decisions_poll_interval_ms / 1000, settings.bus_unreachable_max_ms / 1000
    give_up, pause_ms = None, RETRY_MS[0]
    after = storage.decided_seq
    while True:
        try:
            if caught_up.is_set() and give_up is None and not bus.changed():
                await asyncio.sleep(poll_s)
                continue
            after = await _catch_up(bus, storage, heard, after)
            caught_up.set()
            give_up, pause_ms = None, RETRY_MS[0]
        except TrimmedError:
            raise
        except BusError as error:
            give_up = give_up or loop.time() + unreachable_max_s
            if loop.time() >= give_up:
                raise
            logger.warning("bus out of reach", why=str(error))
            await asyncio.sleep(pause_ms / 1000)
            pause_ms = min(2 * pause_ms, RETRY_MS[1])


async def _catch_up(bus: Bus, storage: Storage, heard: Heard, after: int) -> int:
    """Read on to the end, and return the last event that was; between chunks others get their turn."""
    while chunk := _whole_events(bus, after):
        events = [[decode(decided.body) for decided in group] for group in chunk]
        for decisions in storage.append(events):
            heard(decisions)
            after = decisions[0].seq
        await asyncio.sleep(0)
    return after


def _whole_events(bus: Bus, after: int) -> list[list[Decided]]:
    """Read decisions, in whole events: what a chunk's end may have cut is read again, in a longer one if need be."""
    limit = CHUNK
    while True:
        read = bus.decisions((after, _AFTER_ALL_OF), limit)
        groups = [list(group) for _, group in groupby(read, key=lambda decided: decided.seq)]
        if len(read) < limit:
            return groups
        if len(groups) > 1:
            return groups[:-1]
        limit *= 4
