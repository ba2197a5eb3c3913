"""A shadow of a live cluster: it reads the metadata log, and publishes each operation on a bus of its own."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import structlog

from brokers.engine.publisher import Publisher
from brokers.shadow.controller_line import Position
from brokers.shadow.controller_log import ControllerLog
from brokers.shadow.events import beside_the_log, encoded, events_of
from brokers.shadow.evidence import with_words
from brokers.shadow.fetch_times import FetchTimes, keep_asking
from brokers.shadow.metadata_reader import MetadataReader
from brokers.shadow.metrics import ShadowMeasures
from brokers.shadow.operations import Operations
from brokers.shadow.pending import Pending
from brokers.shadow.quorum import Quorum
from brokers.shadow.resumed import Resumed
from brokers.shadow.shadow_bus import Observation, newest_observation
from brokers.shadow.source import Batch, Gap, Read, Snapshot
from brokers.shadow.static_settings import StaticSettings
from bus.clock import now_ms, steady_ms
from bus.interface import Bus
from state.observed_events import Cause, Observed, ObservedSetting

logger = structlog.get_logger()

BUS_UNREACHABLE_MAX_MS = 300_000
# Batches come twice a second from an idle controller.
_QUIET_MS = 2_000
# How often a reader tells that it goes on. Less often than what is shown counts as old.
LIFE_S = 5.0
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
        # The time of the newest batch in the observed cluster.
        self._batch_ms: int | None = None
        self._cluster_id = cluster_id or ""
        self._newest: Observation | None = None
        self._settings = StaticSettings()
        # Whether there is an operation on the bus.
        self._begun = asyncio.Event()
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
        beside = [
            asyncio.create_task(one)
            for one in (
                keep_asking(self._quorum, self._times),
                self._settings.keep_asking(self._quorum, self._tell_settings),
                self._look(),
                self._tell_of_life(),
            )
        ]
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
        cluster_id = self._cluster_id = await self._reader.cluster_id()
        newest = self._newest = newest_observation(self._bus, cluster_id)
        if newest is not None:
            self._begun.set()
        resumed = None if newest is None else Resumed(newest.last_offset, self._bus)
        after = None if newest is None else Position(newest.last_offset + 1, newest.epoch)
        logger.info("observing", cluster_id=cluster_id, after=None if newest is None else newest.last_offset)
        async for item in self._reader.follow(after):
            self._note(item)
            for operation in self._operations.take(item):
                told = operation if resumed is None else await resumed.new_of(operation)
                if told is not None:
                    await self._put(events_of(with_words(told, self._logs), cluster_id))
            self._tell_notes()

    async def _put(self, events: Sequence[Observed]) -> None:
        await self._pending.put([encoded(event) for event in events])
        # Not before: what is told beside the log must not name an operation that is not on the bus.
        self._newest = Observation(events[-1].last_offset, events[-1].epoch)
        self._published[events[0].cause] += 1
        if not self._begun.is_set():
            self._begun.set()
            # What follows is compared with what the rules decide under these settings.
            await self._settings.first_answer()

    async def _tell_of_life(self) -> None:
        """Tell until when nothing has changed, as long as the active controller answers.

        Otherwise a reader that has stopped could not be told from a cluster in which nothing happens.
        """
        while True:
            await asyncio.sleep(LIFE_S)
            if self._newest is not None and self._batch_ms is not None and self._quorum.silent_ms <= _QUIET_MS:
                await self._tell(Cause.no_change)

    async def _tell_settings(self, controller: int, settings: Mapping[str, str]) -> None:
        rows = [
            ObservedSetting(entity_type="controller", entity=str(controller), key=key, value=value)
            for key, value in sorted(settings.items())
        ]
        await self._begun.wait()
        await self._tell(Cause.static_settings, rows)

    async def _tell(self, cause: Cause, settings: Sequence[ObservedSetting] = ()) -> None:
        """Publish what the log does not say, at the operation that was published last."""
        assert self._newest is not None, "it tells nothing before"
        # Batches may be rare: ``metadata.max.idle.interval.ms`` may be 0.
        time_ms = 0 if self._batch_ms is None else self._batch_ms + steady_ms() - self._read_ms
        event = beside_the_log(self._cluster_id, self._newest, cause, time_ms, settings)
        await self._pending.put([encoded(event)])

    def _note(self, item: Read) -> None:
        self._read_ms = steady_ms()
        match item:
            case Batch():
                self._lag_ms, self._batch_ms = max(0, now_ms() - item.time_ms), item.time_ms
            case Gap():
                self._gaps += 1
                logger.warning("records were missed", start=item.start, end=item.end, why=item.why)
            case Snapshot():
                self._batch_ms = item.time_ms
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
