"""A gateway to brokers of Kafka 3.9 in ZooKeeper mode: their controller, which does what the engine decides.

The problem: these brokers obey the process that holds ``/controller`` and sends LeaderAndIsr, UpdateMetadata and
StopReplica requests with the newest epoch. They report nothing by themselves. ZooKeeper says which of them live.

The insight: the gateway decides nothing and keeps nothing. What brokers must know follows from the last committed state
and the decisions after it. So a gateway that starts tells brokers everything, and a slow one tells them the newest. The
engine also decides which gateway leads, as for brokers of Kafka 4 (``controller_logic/gateways.py``).

    ZooKeeper --watches--> Leadership --events--> EngineClient --> bus --> engine
        ^                    |    ^                   ^                      |
        +---guarded writes---+    +-- decisions ------|--- Following <-------+
                             v                        |
    brokers <--requests-- Channel --reports-----------+
"""

import asyncio
import contextlib
import time
import uuid
from collections import Counter
from collections.abc import Sequence
from functools import partial

import structlog

from brokers.engine.follow import follow
from brokers.gateways.shared.engine_client import EngineClient
from brokers.gateways.shared.file_settings import FileSettings
from brokers.gateways.shared.heartbeats import Heartbeats
from brokers.gateways.shared.metrics import GatewayMeasures
from brokers.gateways.zk.apis.context import Context
from brokers.gateways.zk.apis.proxy import Proxy
from brokers.gateways.zk.apis.serving import answering
from brokers.gateways.zk.channels.probing import Probing, serving
from brokers.gateways.zk.client.zookeeper_errors import ZookeeperError
from brokers.gateways.zk.cluster_view import ClusterView
from brokers.gateways.zk.decision_reader import DecisionReader
from brokers.gateways.zk.failure_log import FailureLog
from brokers.gateways.zk.lead_watch import LeadWatch
from brokers.gateways.zk.mirror.mirror import MirrorError
from brokers.gateways.zk.settings import Identity, Settings
from brokers.gateways.zk.term.leadership import Leadership, NotNamedError
from brokers.gateways.zk.term.written_decision import check_has_written, newest_decision
from brokers.gateways.zk.znodes import ZnodeError
from brokers.wire.decoded_size import decoded_bytes_max
from brokers.wire.server import Server
from bus.clock import StallWatch
from bus.interface import Bus, BusError
from conf.phases import Phases
from state.decisions import Answer, AnyDecision
from state.ids import NO_LEADER

logger = structlog.get_logger()

# The pause before the next attempt to lead.
LEAD_AGAIN_S = 0.5
_STOP_TIMEOUT_S = 10.0


class Gateway:
    """One gateway, from its start to its end."""

    def __init__(self, identity: Identity, settings: Settings, bus: Bus, phases: Phases | None = None) -> None:
        self._phases = phases or Phases()
        self._identity = identity
        self._settings = settings
        self._bus = bus
        self._incarnation = uuid.uuid4().hex
        self._stopping = asyncio.Event()
        self._engine = EngineClient(bus, self._incarnation, settings)
        voters = [voter.voter for voter in identity.voters]
        self._heartbeats = Heartbeats(self._engine, identity.gateway, self._incarnation, voters, is_kraft=False)
        self._reader = DecisionReader(bus, settings)
        self._lead_watch = LeadWatch(self._reader.watch)
        self._is_serving = False
        self._view = ClusterView()
        self._proxy = Proxy(self._view, settings)
        self._probing = Probing(self._view, settings)
        self._file_settings = FileSettings(lambda: serving(self._view, self.leads), self._view.decided_settings)
        self._leadership: Leadership | None = None
        # The term that is beginning.
        self._beginning: Leadership | None = None
        self._lead_at_s = 0.0
        self._cannot_lead = FailureLog("cannot lead")
        # All decisions on the events up to here are in the view.
        self._seq = 0
        self._settled = asyncio.Event()

    def measures(self) -> GatewayMeasures:
        """Measure this gateway, from any thread."""
        events, event_bytes = self._engine.waiting
        return GatewayMeasures(
            gateway=self._identity.gateway,
            is_serving=self._is_serving,
            phase=self._phases.told,
            leads=self.leads,
            leader=self.leader,
            quorum_epoch=self._view.quorum_epoch,
            decided_seq=self._seq,
            # Copied, because another thread changes them.
            brokers=Counter(broker.state for broker in list(self._view.brokers.values())),
            events=events,
            event_bytes=event_bytes,
            is_cut_off=self._engine.is_cut_off,
            heard=len(self._probing.heard),
            overruled=self._file_settings.count,
        )

    def stop(self) -> None:
        """Ask the gateway to end; ``run`` returns soon after."""
        self._stopping.set()

    async def run(self) -> None:
        """Serve until ``stop``. Raises ``BusError`` when the bus stays out of reach."""
        settings = self._settings
        try:
            self._phases.begin("reading the state on the bus")
            found = await self._reader.image()
            self._view.begin_with(found, await self._reader.ask(partial(newest_decision, through=found.seq)))
            self._seq = found.seq
            async with asyncio.TaskGroup() as group:
                following = follow(self, settings.decisions_poll_interval_ms, settings.bus_unreachable_max_ms)
                parts = (self._engine.run(), following, self._live(), self._serve(), self._probing.run())
                tasks = [group.create_task(part) for part in (*parts, self._file_settings.run())]
                await self._stopping.wait()
                if self._leadership is not None:
                    # Nothing is published once the tasks below have ended.
                    self._leadership.report_now()
                if self._is_serving:
                    # Another gateway takes /controller as soon as the engine names it.
                    await self._heartbeats.hand_over(self, self._settings.hand_over_timeout_ms)
                for task in tasks:
                    task.cancel()
        finally:
            if (term := self._leadership or self._beginning) is not None:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(term.end(), _STOP_TIMEOUT_S)
            self._engine.close()
            self._reader.close()
        logger.info("stopped")

    # Decisions

    async def has_news(self) -> bool:
        """Return whether there are decisions to take in, or a term to begin or end."""
        return self._must_settle() or await self._reader.has_news()

    async def catch_up(self) -> None:
        """Take in all decisions, and lead if the engine says so."""
        await self._take_in_all()
        await self._settle()

    async def _take_in_all(self) -> None:
        while events := await self._reader.read(self._seq):
            await self._take_in(events)
            self._seq = events[-1][-1].seq

    async def _take_in(self, events: Sequence[Sequence[AnyDecision]]) -> None:
        def apply() -> None:
            for event in events:
                for decision in event:
                    self._view.apply(decision)

        if self._leadership is None or self._leadership.ended is not None:
            apply()
        else:
            await self._leadership.publish(events, apply)
        self._view.removed.clear()
        for event in events:
            self._heartbeats.hear(event)
            self._engine.answered([decision for decision in event if isinstance(decision, Answer)])
            self._engine.passed(event[0].seq)

    # Who leads

    @property
    def leads(self) -> bool:
        """Whether brokers obey this gateway."""
        return self._leadership is not None and self._leadership.ended is None and self._is_named()

    @property
    def leader(self) -> int:
        """The gateway that the engine names; -1 if none."""
        return self._view.leader[0] if self._view.leader else NO_LEADER

    def _is_named(self) -> bool:
        return self._view.leader == (self._identity.gateway, self._incarnation)

    def _must_settle(self) -> bool:
        if self._leadership is not None:
            return self._leadership.ended is not None or not self._is_named()
        return self._is_due()

    def _is_due(self) -> bool:
        return self._is_named() and asyncio.get_running_loop().time() >= self._lead_at_s

    async def _settle(self) -> None:
        """End a term that is over, and begin one if the engine names this gateway."""
        if self._view.leader is not None and self._view.leader[0] != self._identity.gateway:
            self._settled.set()
        if not self._must_settle():
            return
        if self._leadership is not None:
            logger.warning("no longer leads", why=self._leadership.ended or "the engine names another gateway")
            if self._leadership.ended is not None:
                self._lead_later()
            former, self._leadership = self._leadership, None
            await former.end()
        if self._is_due():
            await self._lead()

    def _lead_later(self) -> None:
        """Pause before the next term: each one raises the controller epoch, and what ended the last may go on."""
        self._lead_at_s = asyncio.get_running_loop().time() + LEAD_AGAIN_S

    async def _lead(self) -> None:
        bus_id = await self._reader.ask(lambda bus: bus.bus_id())
        term = self._beginning = Leadership(
            self._identity, self._settings, self._engine, self._view, bus_id, self._has_caught_up
        )
        try:
            await term.begin()
        except NotNamedError as error:
            logger.info("does not lead", why=str(error))
            await self._give_up(term)
        except (ZookeeperError, MirrorError, ZnodeError) as error:
            self._cannot_lead.failed(str(error), time.monotonic())
            await self._give_up(term)
        except BusError:
            await self._give_up(term)
            raise
        else:
            self._cannot_lead.succeeded()
            self._leadership, self._beginning = term, None
            self._settled.set()

    async def _give_up(self, term: Leadership) -> None:
        await term.end()
        self._beginning = None
        self._lead_later()

    async def _has_caught_up(self, note: bytes) -> bool:
        """Take in all decisions, and return whether the engine names this gateway after them.

        Raises ``OtherBusError`` if the bus does not have the decision that ``note`` names.
        """
        await self._reader.ask(partial(check_has_written, note=note))
        await self._take_in_all()
        return self._is_named()

    # What the engine hears of this gateway

    async def _live(self) -> None:
        self._heartbeats.start()
        stall = StallWatch(self._settings.gateway_heartbeat_interval_ms, self._settings.gateway_lateness_ms_min)
        while True:
            stall.begin()
            await asyncio.sleep(self._settings.gateway_heartbeat_interval_ms / 1000)
            late_ms = stall.end()
            is_loading = self._beginning is not None and self._beginning.holds_controller
            # A term without a connection to ZooKeeper can do nothing, but another gateway may have a connection.
            leads = self.leads and not (self._leadership and self._leadership.cut_off.is_now)
            why = self._lead_watch.look(time.monotonic(), is_named=self._is_named(), leads=leads, is_loading=is_loading)
            self._heartbeats.send(late_ms, why, self._probing.told(late_ms, leads=self.leads))

    # What brokers and clients ask

    async def _serve(self) -> None:
        # Brokers look for a controller when they start. Until /controller names a gateway they must not find this one.
        self._phases.begin("waiting to hear which gateway leads")
        await self._settled.wait()
        settings, (host, port) = self._settings, self._identity.place
        context = Context(
            self._identity,
            settings,
            self._engine,
            self._view,
            self._proxy,
            lambda: self.leads,
            lambda: self._leadership.first_producer_id if self._leadership else 0,
            self._note_producer_ids,
        )
        server = Server(answering(context), settings.limits, self._proxy.close, decoded_bytes_max=decoded_bytes_max)
        await server.start(host, port)
        self._is_serving = True
        self._phases.end()
        logger.info("serving", host=host, port=port)
        try:
            await asyncio.Event().wait()
        finally:
            await server.stop()

    async def _note_producer_ids(self, next_id: int) -> None:
        if (term := self._leadership) is None:
            raise ZookeeperError("the term is over")
        await term.note_producer_ids(next_id)
