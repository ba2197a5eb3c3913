"""Write the decisions into the metadata log as they arrive, and then tell the parts of the gateway about them.

The problem: reading decisions, translating them and waiting for the disk take time, and one event may have a hundred
thousand decisions. Meanwhile the event loop must answer heartbeats and fetches. And no fetch may see records of a
leader that the gateway does not know yet.

The insight: this slow work can be done ahead, because it has no effect yet. While one group of events is on its way to
the disk, a thread reads and translates the next events. They become the next group. So the slower the disk is, the more
events share one wait for it.

    thread       read a    read b    read c    read d
    event loop             commit a ........ add a, apply a    commit b, c ........ add b and c, apply b and c
    disk                   write a                             write b, c

Only ``add`` and ``apply`` have effects. ``add`` makes the records of a group readable. The first portion of ``apply``
names the leader and the brokers that serve, and runs in the same step of the event loop. The other portions follow one
by one, and other tasks run between them.

Rejected: writing and applying each chunk of decisions in the event loop. A large event then held up heartbeats and
fetches.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from brokers.engine.follow import follow
from brokers.gateways.kraft.log.prepared import Event, Prepared
from brokers.gateways.kraft.log.storage import Storage
from brokers.gateways.kraft.settings import Settings
from brokers.gateways.shared.read_watch import ReadWatch
from brokers.gateways.shared.whole_events import whole_events
from bus.interface import Bus

# How much may wait while the disk is busy. A single event may be larger.
WAITING_MAX = 8
WAITING_BYTES_MAX = 32 * 1024 * 1024

# Applies events in portions. Each step of the iterator is one portion, and other tasks run after it.
Apply = Callable[[Sequence[Event]], Iterable[None]]


class DecisionFeed:
    """A gateway's place in the decision log, which its own metadata log remembers.

    ``apply`` gets the events in order. Its first portion runs in the same step of the event loop as
    ``Storage.add``, which makes their records readable. ``caught_up`` is set when the end is reached for the first
    time. ``read_watch`` times each call to the bus, and each commit.
    """

    def __init__(self, bus: Bus, storage: Storage, apply: Apply, settings: Settings, read_watch: ReadWatch) -> None:
        self.caught_up = asyncio.Event()
        self._bus = bus
        self._storage = storage
        self._apply = apply
        self._settings = settings
        self._read_watch = read_watch
        self._waiting: list[Prepared] = []
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="decisions")

    async def run(self) -> None:
        """Follow until cancelled.

        Raises ``BusError`` when the bus stays out of reach, ``TrimmedError`` when decisions that the log lacks were
        removed, ``UnknownDecisionError`` when a decision is of a kind that this version does not know.
        """
        # Leaving waits for the read that is under way, because nothing may read a bus after it was closed.
        with self._thread:
            await follow(self, self._settings.decisions_poll_interval_ms, self._settings.bus_unreachable_max_ms)

    async def has_news(self) -> bool:
        if not self.caught_up.is_set():
            return True
        interval_ms = self._settings.decisions_poll_interval_ms
        return await self._read_watch.look(self._thread, self._bus.changed, interval_ms)

    async def catch_up(self) -> None:
        """Read to the end. While some decisions are being committed, the next ones are read and translated."""
        loop = asyncio.get_running_loop()
        last: Prepared | None = None
        committing: asyncio.Task[None] | None = None
        try:
            while (last := await loop.run_in_executor(self._thread, self._next, last)) is not None:
                self._waiting.append(last)
                if committing is not None and (committing.done() or self._has_enough()):
                    await committing
                if committing is None or committing.done():
                    committing = asyncio.create_task(self._commit())
        finally:
            # Commit what was read even if the next read fails, because it is not read again.
            if committing is not None:
                await committing
        self.caught_up.set()

    def _has_enough(self) -> bool:
        return len(self._waiting) >= WAITING_MAX or sum(one.size for one in self._waiting) >= WAITING_BYTES_MAX

    async def _commit(self) -> None:
        """Commit and apply whatever waits, until nothing does."""
        while self._waiting:
            group, self._waiting = self._waiting, []
            portions: Iterator[None] = iter(self._apply([event for prepared in group for event in prepared.events]))
            self._read_watch.commits.begin()
            await self._storage.commit(group, partial(next, portions, None))
            self._read_watch.commits.succeeded()
            await asyncio.sleep(0)
            for _ in portions:
                await asyncio.sleep(0)

    def _next(self, last: Prepared | None) -> Prepared | None:
        self._read_watch.begin()
        events = whole_events(self._bus, self._storage.decided_seq if last is None else last.seq)
        # The read has succeeded. The time to translate is not part of it.
        self._read_watch.succeeded()
        return self._storage.prepared(events, last) if events else None
