"""Write the decisions into the metadata log as they arrive."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from brokers.engine.follow import follow
from brokers.gateways.kraft.log.whole_events import decoded, whole_events
from brokers.gateways.kraft.read_watch import ReadWatch
from brokers.gateways.kraft.settings import Settings
from brokers.gateways.kraft.storage import Prepared, Storage
from bus.interface import Bus
from state.decisions import AnyDecision

Apply = Callable[[Sequence[AnyDecision]], None]


class DecisionFeed:
    """A gateway's place in the decision log, which its own log remembers.

    ``apply`` gets the decisions on each event once they are in the log on disk. ``caught_up`` is set when the end is
    reached for the first time. ``read_watch`` times each call to the bus.
    """

    def __init__(self, bus: Bus, storage: Storage, apply: Apply, settings: Settings, read_watch: ReadWatch) -> None:
        self.caught_up = asyncio.Event()
        self._bus = bus
        self._storage = storage
        self._apply = apply
        self._settings = settings
        self._read_watch = read_watch
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="decisions")

    async def run(self) -> None:
        """Follow until cancelled.

        Raises ``BusError`` when the bus stays out of reach, ``TrimmedError`` when decisions were removed that the log
        lacks, ``UnknownFormatError`` when a decision is of a kind that came after this version.
        """
        # Leaving waits for the read that is under way, because nothing may read a bus after it was closed.
        with self._thread:
            await follow(self, self._settings.decisions_poll_interval_ms, self._settings.bus_unreachable_max_ms)

    async def has_news(self) -> bool:
        if not self.caught_up.is_set():
            return True
        self._read_watch.begin()
        changed = await asyncio.get_running_loop().run_in_executor(self._thread, self._bus.changed)
        if not changed:
            self._read_watch.succeeded()
        return changed

    async def catch_up(self) -> None:
        """Read to the end. Other tasks run while the next chunk is read and translated."""
        loop = asyncio.get_running_loop()
        while prepared := await loop.run_in_executor(self._thread, self._next):
            self._storage.append(prepared)
            for decisions in prepared.events:
                self._apply(decisions)
        self.caught_up.set()

    def _next(self) -> Prepared | None:
        self._read_watch.begin()
        groups = whole_events(self._bus, self._storage.decided_seq)
        # Reading has succeeded; the time to translate does not count.
        self._read_watch.succeeded()
        events = [decoded(group) for group in groups]
        return self._storage.prepared(events) if events else None
