"""Follow the decision log into the metadata log."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor

import structlog

from brokers.gateways.kraft.log.whole_events import whole_events
from brokers.gateways.kraft.settings import Settings
from brokers.gateways.kraft.sight import Sight
from brokers.gateways.kraft.storage import Prepared, Storage
from brokers.reaching import RETRY_MS
from bus.interface import Bus, BusError, TrimmedError
from state.decisions import AnyDecision, decode

logger = structlog.get_logger()

Heard = Callable[[Sequence[AnyDecision]], None]


async def follow(
    bus: Bus, storage: Storage, heard: Heard, caught_up: asyncio.Event, settings: Settings, sight: Sight
) -> None:
    """Write what each event's decisions come to, then hand them to ``heard``; set ``caught_up`` at the first end.

    ``sight`` hears of each look at the bus.
    Raises ``BusError`` when the bus stays out of reach, ``TrimmedError`` when decisions went that the log
    on disk lacks.
    """
    loop = asyncio.get_running_loop()
    poll_s, unreachable_max_s = settings.decisions_poll_interval_ms / 1000, settings.bus_unreachable_max_ms / 1000
    give_up, pause_ms = None, RETRY_MS[0]
    # Who ends this waits for the read that is under way: nothing reads a bus that is closed.
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="follower") as thread:
        while True:
            try:
                sight.looks()
                if caught_up.is_set() and give_up is None and not await loop.run_in_executor(thread, bus.changed):
                    sight.sees()
                    await asyncio.sleep(poll_s)
                    continue
                await _catch_up(bus, storage, heard, thread, sight)
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


async def _catch_up(bus: Bus, storage: Storage, heard: Heard, thread: Executor, sight: Sight) -> None:
    """Read on to the end; others get their turn while the next chunk is read and worked out."""
    loop = asyncio.get_running_loop()
    while prepared := await loop.run_in_executor(thread, _next, bus, storage, sight):
        storage.append(prepared)
        for decisions in prepared.events:
            heard(decisions)


def _next(bus: Bus, storage: Storage, sight: Sight) -> Prepared | None:
    sight.looks()
    groups = whole_events(bus, storage.decided_seq)
    # However long it takes to work them out, they were read.
    sight.sees()
    events = [[decode(decided.body) for decided in group] for group in groups]
    return storage.prepared(events) if events else None
