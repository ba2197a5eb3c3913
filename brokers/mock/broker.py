"""One mock broker from start to stop."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import NoReturn

import structlog

from brokers.mock.apis.context import Context
from brokers.mock.apis.serving import answering
from brokers.mock.control.decision_feed import DecisionFeed
from brokers.mock.control.lifecycle import Lifecycle
from brokers.mock.control.outbox import Outbox
from brokers.mock.decision_handler import DecisionHandler
from brokers.mock.held_directory import last_port, note_address
from brokers.mock.log.directory import LogDirectory
from brokers.mock.metadata import Metadata
from brokers.mock.metrics import BrokerMeasures
from brokers.mock.replicas.partition import Role
from brokers.mock.replicas.table import Replicas
from brokers.mock.replicas.waiting import Purgatory
from brokers.mock.settings import Identity, Settings
from brokers.wire.server import Limits, Server
from bus.interface import Bus, BusError

logger = structlog.get_logger()

LAST_REPORTS_TIMEOUT_MS = 5_000


class DirectoryLostError(Exception):
    """The only log directory is offline, so this process must stop."""


class Broker:
    """The parts of a broker, and the order in which they start and stop."""

    def __init__(self, identity: Identity, settings: Settings, bus: Bus) -> None:
        self.identity = identity
        self._settings = settings
        self._directory = LogDirectory(identity.directory)
        self._metadata = Metadata()
        self._outbox = Outbox(identity.broker, bus, settings)
        self.replicas = Replicas(identity.broker, self._directory, self._metadata, self._outbox, settings)
        self.lifecycle = Lifecycle(identity, self._outbox, settings, self._directory.previous_broker_epoch)
        self._handler = DecisionHandler(identity.broker, self._metadata, self.lifecycle, self._outbox, self.replicas)
        self._feed = DecisionFeed(bus, self._handler.apply, settings)
        self._purgatory = Purgatory(settings.purgatory_max_requests)
        parts = (self._metadata, self.replicas, self._purgatory)
        self._server = self.server_of(Context(identity.broker, settings, *parts))
        self._stopping = asyncio.Event()
        self._directory_lost = asyncio.Event()
        self._directory.on_loss = self._directory_lost.set

    def server_of(self, context: Context) -> Server:
        """Make the server that listens to clients."""
        limits = Limits(
            socket_request_max_bytes=self._settings.socket_request_max_bytes,
            max_connections=self._settings.max_connections,
            connections_max_idle_ms=self._settings.connections_max_idle_ms,
        )
        return Server(answering(context), limits)

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    def measures(self) -> BrokerMeasures:
        """Measure this broker, from any thread."""
        # Copied, because another thread changes them.
        partitions = list(self.replicas.partitions.values())
        led = [partition for partition in partitions if partition.is_leader]
        return BrokerMeasures(
            broker=self.identity.broker,
            broker_epoch=self.lifecycle.broker_epoch,
            led=len(led),
            followed=sum(partition.role is Role.follower for partition in partitions),
            under_replicated=sum(len(partition.isr) < len(partition.replicas) for partition in led),
            strays=self._directory.strays(),
            log_records=sum(one.log.log_end_offset - one.log.log_start_offset for one in partitions),
            uncommitted=sum(one.log.log_end_offset - one.high_watermark for one in led),
            events=self._outbox.waiting,
            requests=self._purgatory.waiting,
        )

    def stop(self) -> None:
        """Begin an orderly stop. ``run`` returns at its end."""
        self._stopping.set()

    async def run(self) -> None:
        """Serve until stopped. If a part fails, the broker ends with its error."""
        self._feed.start()
        port = await self._listen()
        note_address(self.identity.directory, self.identity.broker, self.identity.host, port)
        logger.info("listening", host=self.identity.host, port=port)
        parts = [asyncio.create_task(part) for part in (self._outbox.run(), self._feed.run())]
        parts.append(asyncio.create_task(self._live(port)))
        stopped = asyncio.create_task(self._stopping.wait())
        lost = asyncio.create_task(self._directory_lost.wait())
        try:
            await asyncio.wait([*parts, stopped, lost], return_when=asyncio.FIRST_COMPLETED)
            if self._directory_lost.is_set():
                await self._give_up(parts)
            if self._stopping.is_set():
                await self._shut_down()
            for part in parts:
                if part.done():
                    part.result()
        finally:
            stopped.cancel()
            lost.cancel()
            for part in parts:
                part.cancel()
            await asyncio.gather(*parts, return_exceptions=True)
            await self._server.stop()
            self._outbox.close()

    async def _give_up(self, parts: Sequence["asyncio.Task[None]"]) -> NoReturn:
        """Report all replicas offline, and stop, as Kafka does when its last log directory fails.

        With the reports the leaders move at once, and not only when the session ends.
        """
        self._handler.is_acting = False
        self.replicas.report_offline()
        for part in parts:
            part.cancel()
        await asyncio.gather(*parts, return_exceptions=True)
        with contextlib.suppress(TimeoutError, BusError):
            async with asyncio.timeout(LAST_REPORTS_TIMEOUT_MS / 1000):
                await self._outbox.flush()
        raise DirectoryLostError(f"the only log directory, {self._directory.path}, is offline")

    async def _listen(self) -> int:
        """Listen on the given port. For port 0, prefer the last port if it is free.

        Clients that did not notice a restart connect to the last address.
        """
        host, port = self.identity.host, self.identity.port
        if port == 0 and (last := last_port(self.identity.directory)) is not None:
            with contextlib.suppress(OSError, OverflowError):
                return await self._server.start(host, last)
        return await self._server.start(host, port)

    async def _live(self, port: int) -> None:
        """Register, start the replicas, and maintain them."""
        broker_epoch = await self.lifecycle.register(port)
        self.replicas.set_broker_epoch(broker_epoch)
        self.replicas.begin()
        self._handler.is_acting = True
        async with asyncio.TaskGroup() as group:
            group.create_task(self.lifecycle.run())
            group.create_task(self._every(self._settings.replica_lag_time_max_ms / 2, self.replicas.look_after_isr))
            checkpoints = self._settings.replica_high_watermark_checkpoint_interval_ms
            group.create_task(self._every(checkpoints, self.replicas.checkpoint))

    async def _every(self, interval_ms: float, work: Callable[[], None]) -> None:
        while True:
            await asyncio.sleep(interval_ms / 1000)
            work()
            for fetcher in self.replicas.fetchers.failed():
                fetcher.result()

    def _others_active(self) -> bool:
        brokers = self._metadata.brokers.values()
        return any(b.state == "active" for b in brokers if b.broker != self.identity.broker)

    async def _shut_down(self) -> None:
        """Hand over the leaderships, then force all logs to disk and close them."""
        logger.info("shutting down")
        allowed = await self.lifecycle.shut_down(self._others_active)
        if not allowed:
            logger.warning("shutdown was not allowed in time")
        self._handler.is_acting = False  # from now on no decision may touch the logs, which are being closed
        await self._server.stop()
        await self.replicas.fetchers.stop()
        self.replicas.close()
        self._directory.mark_clean_shutdown(self.lifecycle.broker_epoch)
        logger.info("stopped", handed_over=allowed)
