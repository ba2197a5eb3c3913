"""Write the decisions into the metadata log as they come."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from brokers.engine.follow import follow
from brokers.gateways.kraft.log.whole_events import whole_events
from brokers.gateways.kraft.read_watch import ReadWatch
from brokers.gateways.kraft.settings import Settings
from brokers.gateways.kraft.storage import Prepared, Storage
from bus.interface import Bus
from state.decisions import AnyDecision, decode

Heard = Callable[[Sequence[AnyDecision]], None]


class DecisionFeed:
    """The place of a gateway in the decision log: its own log says how far it has come.

    ``heard`` is called with each event's decisions once they are in the log on disk. ``caught_up`` is set at the
    first end. ``read_watch`` hears of each look at the bus.
    """

    def __init__(self, bus: Bus, storage: Storage, heard: Heard, settings: Settings, read_watch: ReadWatch) -> None:
        self.caught_up = asyncio.Event()
        self._bus = bus
        self._storage = storage
        self._heard = heard
        self._settings = settings
        self._read_watch = read_watch
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="decisions")

    async def run(self) -> None:
        """Follow until cancelled.

        Raises ``BusError`` when the bus stays out of reach, ``TrimmedError`` when decisions went that the log
        on disk lacks.
        """
        # Leaving waits for the read that is under way, because nothing may read a bus that is closed.
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
        """Read on to the end; others get their turn while the next chunk is read and translated."""
        loop = asyncio.get_running_loop()
        while prepared := await loop.run_in_executor(self._thread, self._next):
            self._storage.append(prepared)
            for decisions in prepared.events:
                self._heard(decisions)
        self.caught_up.set()

    def _next(self) -> Prepared | None:
        self._read_watch.begin()
        groups = whole_events(self._bus, self._storage.decided_seq)
        # They were read, however long it takes to translate them.
        self._read_watch.succeeded()
        events = [[decode(decided.body) for decided in group] for group in groups]
        return self._storage.prepared(events) if events else None
