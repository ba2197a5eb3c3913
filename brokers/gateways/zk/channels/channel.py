"""The requests to one broker: sent in order, one at a time, and repeated until it answers or is gone."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence

import structlog

from brokers.gateways.shared.engine_client import EngineClient
from brokers.gateways.shared.event_queue import Lane, QueueFullError
from brokers.gateways.zk.channels.requests.answers import Report, StaleBrokerError, check_obeyed, events_of, reports_of
from brokers.gateways.zk.channels.requests.building import Answered, Outgoing, Sender, listener_named, requests_of
from brokers.gateways.zk.channels.requests.news import Everything, News
from brokers.gateways.zk.channels.requests.partition_states import PartitionStates
from brokers.gateways.zk.channels.requests.pending import Batch, Pending
from brokers.gateways.zk.cluster_view import ClusterView
from brokers.gateways.zk.messages import CATALOGUE, LEADER_AND_ISR, STOP_REPLICA
from brokers.gateways.zk.settings import Settings
from brokers.wire.connection import FrameConnection
from brokers.wire.errors import ErrorCode
from brokers.wire.messages import WireError
from brokers.wire.schema import MessageError, Values
from bus.clock import now_ms
from state.decisions import BrokerDecision, StopReplica
from state.topic_events import ReplicaReports

logger = structlog.get_logger()

CLIENT_ID = "isrflow"
# The pause after a failure doubles up to this many times the first one.
PAUSES_MAX = 32
FULL_PAUSE_S = 0.1
# For how long reports wait while there are requests to send, and how many wait at most.
REPORTS_WAIT_S = 1.0
REPORTS_WAITING_MAX = 20_000


class Channel:
    """The requests to one incarnation of a broker. ``published`` is set while ZooKeeper holds all that ``view`` has."""

    def __init__(
        self,
        broker: BrokerDecision,
        view: ClusterView,
        states: PartitionStates,
        sender: Sender,
        engine: EngineClient,
        settings: Settings,
        published: asyncio.Event,
    ) -> None:
        self.broker = broker
        self._view = view
        self._states = states
        self._sender = sender
        self._engine = engine
        self._settings = settings
        self._published = published
        self._pending = Pending(settings.requests_waiting_max, settings.requests_waiting_bytes_max)
        self._answered: Answered = {}
        # Reports that the engine has not heard, and the timer that sends them at the latest.
        self._reports: list[Report] = []
        self._due: asyncio.TimerHandle | None = None
        self._is_asked_again = False
        self._connection: FrameConnection | None = None
        self._correlation_id = 0
        self._wake = asyncio.Event()

    def tell(self, news: News) -> None:
        """Add what an event's decisions mean for this broker."""
        self._pending.tell(self.broker.broker, news)
        self._wake.set()

    def tell_all(self, everything: Everything, orders: Iterable[StopReplica] = ()) -> None:
        """Tell the broker everything, and the newest ``orders`` to stop its replicas."""
        self._pending.tell_all(self.broker.broker, everything, orders)
        self._wake.set()

    def ask_again(self) -> None:
        """Tell the broker everything again, because it lost a log directory.

        It answers ``KAFKA_STORAGE_ERROR`` for each replica that was in that directory, even if the request says
        nothing new (``KafkaController.processLogDirEventNotification``).
        """
        self._is_asked_again = True
        self._wake.set()

    def know(self, broker: BrokerDecision) -> None:
        """Take in a decision about this incarnation of the broker. It may listen elsewhere by now."""
        has_moved = broker.listeners != self.broker.listeners
        self.broker = broker
        if has_moved:
            # A request under way fails, and is repeated there.
            self._disconnect()

    async def run(self) -> None:
        """Send until cancelled, or until the broker says that it started again.

        Raises ``StaleControllerError`` when the broker obeys a later controller.
        """
        pause_ms = self._settings.retry_backoff_ms
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                while (batch := await self._next()) is not None:
                    try:
                        await self._send_batch(batch)
                        pause_ms = self._settings.retry_backoff_ms
                    except (OSError, TimeoutError, WireError) as error:
                        self._pending.put_back(batch)
                        await self._report()
                        logger.info("request failed", broker=self.broker.broker, why=str(error) or repr(error))
                        self._disconnect()
                        await asyncio.sleep(pause_ms / 1000)
                        pause_ms = min(2 * pause_ms, PAUSES_MAX * self._settings.retry_backoff_ms)
                await self._report()
        except StaleBrokerError as error:
            # Its next registration begins another channel.
            logger.info("requests end", broker=self.broker.broker, why=str(error))
        finally:
            self._disconnect()
            self.report_now()
            self._end_waiting()

    async def _next(self) -> Batch | None:
        await self._published.wait()
        if self._is_asked_again:
            # Not earlier, because a request that was under way may have been answered since.
            self._is_asked_again = False
            self._answered.clear()
            self._pending.tell_all(self.broker.broker, Everything(self._view))
        if self._pending.is_overfull:
            logger.warning("too far behind, so everything is told", broker=self.broker.broker)
            self._pending.tell_all(self.broker.broker, Everything(self._view))
        return self._pending.take()

    async def _send_batch(self, batch: Batch) -> None:
        for request, frame in self._written(batch):
            values = await self._ask(request.api_key, frame)
            check_obeyed(values)
            if request.api_key == LEADER_AND_ISR:
                self._answered |= {place: (told.topic_id, told.leader_epoch) for place, told in request.told.items()}
            elif request.api_key == STOP_REPLICA:
                for place in request.told:
                    self._answered.pop(place, None)
            await self._answer_came(list(reports_of(request, values)))

    def _written(self, batch: Batch) -> Iterator[tuple[Outgoing, bytes]]:
        """Yield each request, and its bytes. Raises ``MessageError``."""
        versions = self._sender.versions
        try:
            for one in requests_of(batch, self.broker, self._view, self._states, self._sender, self._answered):
                self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
                key, number = one.api_key, self._correlation_id
                yield one, CATALOGUE.encode_request(key, versions.of(key), number, CLIENT_ID, one.values)
        except MessageError as error:
            # The broker is told nothing more until another decision replaces what this version cannot carry.
            logger.error("a request cannot be written", broker=self.broker.broker, why=str(error))
            raise

    async def _ask(self, api_key: int, frame: bytes) -> Values:
        timeout_ms = self._settings.controller_socket_timeout_ms
        if self._connection is None:
            self._connection = await self._connected(timeout_ms)
        version = self._sender.versions.of(api_key)
        response = CATALOGUE.decode_response(api_key, version, await self._connection.ask(frame, timeout_ms))
        if response.correlation_id != self._correlation_id:
            raise WireError("a response to another request")
        return response.values

    async def _connected(self, timeout_ms: int) -> FrameConnection:
        here = self.broker.listeners
        listener = listener_named(here, self._sender.inter_broker_listener)
        opened = await FrameConnection.open(listener.host, listener.port, timeout_ms, self._settings.response_max_bytes)
        if here != self.broker.listeners:
            opened.close()
            raise ConnectionResetError("the broker listens elsewhere now")
        return opened

    async def _answer_came(self, reports: Sequence[Report]) -> None:
        """Take in an answer. Errors are reported at once, the rest once nothing is left to send or the wait is over.

        Reports on a large change touch most pages of the engine's state. The engine writes these pages again in each
        batch with such reports, while brokers wait for their next decisions.
        """
        for one in reports:
            is_lost = one.row.error == ErrorCode.KAFKA_STORAGE_ERROR.name
            self._view.answered(self.broker.incarnation, one.place, is_lost=is_lost)
        failed = [one for one in reports if one.row.outcome == "error"]
        if failed:
            # One event has room for one change of a replica.
            await self._report()
        self._reports += reports
        for error in sorted({str(one.row.error) for one in failed}):
            named = [f"{one.place.topic}-{one.place.partition}" for one in failed if one.row.error == error]
            logger.warning("a broker did not obey", broker=self.broker.broker, error=error, partitions=named[:10])
        if failed or len(self._reports) >= REPORTS_WAITING_MAX:
            await self._report()
        elif self._reports and self._due is None:
            self._due = asyncio.get_running_loop().call_later(REPORTS_WAIT_S, self.report_now)

    async def _report(self) -> None:
        for event in events_of(self._waiting(), self.broker, now_ms()):
            await self._tell(event)

    def report_now(self) -> None:
        """Send the reports that wait to the engine, or a little later if the queue has no room."""
        reports = self._waiting()
        try:
            self._engine.tell(*events_of(reports, self.broker, now_ms()), lane=Lane.PARTITION)
        except QueueFullError:
            self._reports = reports
            self._due = asyncio.get_running_loop().call_later(FULL_PAUSE_S, self.report_now)

    def _waiting(self) -> list[Report]:
        """Take the reports that wait."""
        self._end_waiting()
        reports, self._reports = self._reports, []
        return reports

    def _end_waiting(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None

    async def _tell(self, event: ReplicaReports) -> None:
        """Tell the engine, once its queue has room. The broker's requests wait meanwhile, so nothing piles up."""
        while True:
            try:
                self._engine.tell(event, lane=Lane.PARTITION)
                return
            except QueueFullError:
                await asyncio.sleep(FULL_PAUSE_S)

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
