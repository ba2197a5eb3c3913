"""A shadow of a live cluster: it reads the metadata log, and publishes each operation on a bus of its own."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import structlog

from brokers.engine.publisher import Publisher
from brokers.shadow.controller_line import Position
from brokers.shadow.controller_log import ControllerLog
from brokers.shadow.events import encoded, events_of
from brokers.shadow.evidence import with_words
from brokers.shadow.fetch_times import FetchTimes, keep_asking
from brokers.shadow.metadata_reader import MetadataReader
from brokers.shadow.metrics import ShadowMeasures
from brokers.shadow.operations import Operations
from brokers.shadow.pending import Pending
from brokers.shadow.quorum import Quorum
from brokers.shadow.resumed import Resumed
from brokers.shadow.shadow_bus import newest_observation
from brokers.shadow.source import Batch, Gap, Read, Snapshot
from bus.clock import now_ms, steady_ms
from bus.interface import Bus

logger = structlog.get_logger()

BUS_UNREACHABLE_MAX_MS = 300_000
# Batches come twice a second from an idle controller.
_QUIET_MS = 2_000
# The log of a controller is looked at while nothing happens too, so that little of it is read at once.
_LOOK_S = 1.0


class Shadow:
    """One run. ``cluster_id`` is None if the controllers are to tell it."""

    def __init__(self, quorum: Quorum, bus: Bus, cluster_id: str | None, controller_logs: Sequence[Path]) -> None:
        self._quorum = quorum
        self._bus = bus
        self._reader = MetadataReader(quorum, cluster_id)
        self._logs = [ControllerLog(path) for path in controller_logs]
        self._times = FetchTimes()
        self._operations = Operations(self._times.silent_ms)
        self._pending = Pending()
        self._published: Counter[str] = Counter()
        self._gaps = self._lag_ms = 0
        self._read_ms = steady_ms()
        self._main: asyncio.Task[None] | None = None

    def measures(self) -> ShadowMeasures:
        """Return what the metrics show."""
        quiet_ms = steady_ms() - self._read_ms
        return ShadowMeasures(
            lag_ms=max(self._lag_ms, quiet_ms if quiet_ms > _QUIET_MS else 0),
            offset=self._reader.next_offset,
            gaps=self._gaps,
            operations=dict(self._published),
        )

    def stop(self) -> None:
        """End the run. What was read is published first."""
        if self._main is not None:
            self._main.cancel()

    async def run(self) -> None:
        """Observe until ``stop`` is called.

        Raises ``ForeignBusError``, what ``MetadataReader.follow`` raises, and ``BusError`` if the bus stays out of
        reach.
        """
        publishing = asyncio.create_task(self._publish())
        beside = [asyncio.create_task(keep_asking(self._quorum, self._times)), asyncio.create_task(self._look())]
        self._main = asyncio.create_task(self._observe())
        try:
            await asyncio.wait([self._main, publishing], return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._main.cancel()
            for task in beside:
                task.cancel()
            await asyncio.gather(self._main, *beside, return_exceptions=True)
            await self._pending.close()
            self._quorum.close()
        await publishing
        if not self._main.cancelled():
            await self._main

    async def _observe(self) -> None:
        cluster_id = await self._reader.cluster_id()
        newest = newest_observation(self._bus, cluster_id)
        resumed = None if newest is None else Resumed(newest.last_offset, self._bus)
        after = None if newest is None else Position(newest.last_offset + 1, newest.epoch)
        logger.info("observing", cluster_id=cluster_id, after=None if newest is None else newest.last_offset)
        async for item in self._reader.follow(after):
            self._note(item)
            for operation in self._operations.take(item):
                told = operation if resumed is None else await resumed.new_of(operation)
                if told is not None:
                    events = events_of(with_words(told, self._logs), cluster_id)
                    await self._pending.put([encoded(event) for event in events])
                    self._published[events[0].cause] += 1
            self._tell_notes()

    def _note(self, item: Read) -> None:
        self._read_ms = steady_ms()
        match item:
            case Batch():
                self._lag_ms = max(0, now_ms() - item.time_ms)
            case Gap():
                self._gaps += 1
                logger.warning("records were missed", start=item.start, end=item.end, why=item.why)
            case Snapshot():
                logger.info("read a snapshot", offset=item.offset, epoch=item.epoch, records=len(item.records))
            case _:
                logger.warning("damage", offset=item.offset, what=item.what)

    def _tell_notes(self) -> None:
        notes = self._operations.notes
        for note in notes:
            logger.warning("the log has what it should not have", offset=note.offset, what=note.what)
        notes.clear()

    async def _look(self) -> None:
        while True:
            for log in self._logs:
                log.look()
            await asyncio.sleep(_LOOK_S)

    async def _publish(self) -> None:
        with contextlib.closing(Publisher(self._bus, BUS_UNREACHABLE_MAX_MS, "shadow")) as publisher:
            while batch := await self._pending.next_batch():
                await publisher.publish(lambda events=batch: events)  # type: ignore[misc]
