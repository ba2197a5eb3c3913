"""A gateway: it acts as Kafka's controller quorum, passes on what brokers say, and serves what the engine decides.

The problem: brokers of Kafka 4 obey nothing but a KRaft controller. They register and heartbeat with the quorum's
leader, fetch the metadata log from it, and may never be shown two logs or two leaders in one epoch.

The insight: a gateway decides nothing. Requests become events on the bus, in one order with all other events. The
metadata log is a pure function of the decisions, so all gateways write the same one without talking to each other. And
the leader of the quorum is decided too: gateways heartbeat like brokers, and a ``quorum`` decision names the leader,
which every gateway writes at the same place of its log. So there is no election among gateways and no majority: one
of two is enough (docs/decisions/021-the-metadata-log.md, docs/decisions/022-the-gateway-that-leads.md).

    brokers --request--> serving --> EngineClient --events--> bus --> engine
       ^                                  ^                    |
       |                               answers                 | decisions
       |                                  |                    v
       +----fetch---- Storage <--commit-- + <---------- DecisionFeed --> QuorumView, Deletions

An event's decisions reach the disk before any broker or client hears of them, and an answer goes out only after the
records that it refers to. So a broker that hears "done" finds the change in the log.

What can go wrong is a gateway that is alive but cut off. If it cannot publish, it is not heard. If it cannot read, or
its disk hangs, it stops its heartbeats (``ReadWatch``). If brokers cannot reach it, its heartbeats say so
(``HeardBrokers``). In each case another gateway leads, and this one sends brokers to the other voters.
"""

import asyncio
import contextlib
import time
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import structlog

from brokers.gateways.kraft.announced_voters import announce_here, keep_announced
from brokers.gateways.kraft.context import Context
from brokers.gateways.kraft.following.committed_state import CommittedState
from brokers.gateways.kraft.following.decision_applier import DecisionApplier, SupersededError
from brokers.gateways.kraft.following.decision_feed import DecisionFeed
from brokers.gateways.kraft.following.deletions import Deletions
from brokers.gateways.kraft.following.first_settings import first_settings
from brokers.gateways.kraft.following.quorum_view import QuorumView
from brokers.gateways.kraft.log.storage import Storage
from brokers.gateways.kraft.metadata.image import Registration
from brokers.gateways.kraft.mutation_quotas import MutationQuotas
from brokers.gateways.kraft.probing import Probes, serving
from brokers.gateways.kraft.quick_requests import is_quick
from brokers.gateways.kraft.rebuilding.opening import Opening
from brokers.gateways.kraft.resource_locks import ResourceLocks
from brokers.gateways.kraft.security.access_control import AccessControl
from brokers.gateways.kraft.security.door import end_removed_users
from brokers.gateways.kraft.security.settings import Security
from brokers.gateways.kraft.serving import answering, door_of
from brokers.gateways.kraft.settings import Identity, Settings
from brokers.gateways.shared.engine_client import EngineClient, NoAnswerError
from brokers.gateways.shared.event_queue import Lane, QueueFullError
from brokers.gateways.shared.file_settings import FileSettings
from brokers.gateways.shared.heard_brokers import HeardBrokers
from brokers.gateways.shared.heartbeats import Heartbeats
from brokers.gateways.shared.metrics import GatewayMeasures
from brokers.gateways.shared.read_watch import ReadWatch
from brokers.wire.decoded_size import decoded_bytes_max
from brokers.wire.security.connecting import Client
from brokers.wire.server import Peer, Server
from bus.clock import StallWatch
from bus.interface import Bus
from conf.phases import Phases
from state.events import GatewayHeartbeat
from state.stored.codec import LevelError

logger = structlog.get_logger()
# After a stall, the event loop gets this long to read what brokers sent meanwhile, before the stall is reported.
READ_FIRST_S = 0.05
# One heartbeat in this many asks for an answer, starting with the first: about every ten seconds.
ASKING_EVERY = 25
# These threads read large requests and write large answers. More of them would starve the event loop.
EXECUTOR_THREADS = 2


class Gateway:
    """One gateway, from its start to its end. ``security`` is made from ``settings`` (``security_of``)."""

    def __init__(
        self, identity: Identity, settings: Settings, bus: Bus, security: Security | None, phases: Phases | None = None
    ) -> None:
        self._phases = phases or Phases()
        self._identity = identity
        self._settings = settings
        self._bus = bus
        self._incarnation = uuid.uuid4().hex
        self._security = security
        self._access = AccessControl(settings, identity.audit_directory or identity.directory)
        self._stopping = asyncio.Event()
        self._is_serving = False
        # Whether the engine counts this start; None until it has answered.
        self._counts: bool | None = None
        self._engine = EngineClient(bus, self._incarnation, settings)
        voters = [voter.voter for voter in identity.voters]
        self._heartbeats = Heartbeats(self._engine, identity.gateway, self._incarnation, voters, is_kraft=True)
        self._deletions = Deletions(lambda report: self._engine.tell(report, lane=Lane.PARTITION))
        self._read_watch = ReadWatch(settings.controller_quorum_fetch_timeout_ms / 1000)
        self._quorum_view = QuorumView(identity.gateway, self._incarnation, self._deletions.has_fetched)
        self._probes = Probes(
            self._quorum_view,
            self._registration_of,
            # If the queue has no room, the broker's session expires instead.
            lambda lost: self._engine.tell_if_room(lost, lane=Lane.BROKER),
        )
        self._heard_brokers = HeardBrokers(settings.controller_quorum_fetch_timeout_ms, settings.asked_within_ms)
        self._file_settings = FileSettings(lambda: serving(self._quorum_view, self._registration_of))
        self._opening = Opening(
            identity,
            snapshot_interval_bytes=settings.metadata_log_max_record_bytes_between_snapshots,
            rebuild_wait_max_ms=settings.rebuild_wait_max_ms,
            client=self._security.client if self._security else Client(),
        )
        self._storage: Storage | None = None
        self._executor = ThreadPoolExecutor(max_workers=EXECUTOR_THREADS, thread_name_prefix="executor")

    def measures(self) -> GatewayMeasures:
        """Measure this gateway, from any thread."""
        view, storage = self._quorum_view, self._storage
        # Copied, because another thread changes them.
        brokers = dict(view.brokers)
        fetched = [view.fetched.get(number, 0) for number, broker in brokers.items() if broker.is_serving]
        end, (events, event_bytes) = storage.end_offset if storage else 0, self._engine.waiting
        return GatewayMeasures(
            gateway=self._identity.gateway,
            is_serving=self._is_serving,
            phase=self._phases.told,
            leads=view.leads,
            leader=view.leader,
            quorum_epoch=view.quorum_epoch,
            decided_seq=storage.decided_seq if storage else 0,
            start_offset=storage.start_offset if storage else 0,
            end_offset=end,
            voters=len(self._identity.voters),
            commit_latency_ms=storage.commit_latency_ms if storage else 0.0,
            append_rate=storage.append_rate if storage else 0.0,
            brokers=Counter(broker.state for broker in brokers.values()),
            lag_max=max(0, end - min(fetched, default=end)) if view.leads else 0,
            events=events,
            event_bytes=event_bytes,
            is_cut_off=self._engine.is_cut_off,
            is_blind=self._read_watch.is_stalled,
            heard=len(self._heard_brokers.lately(leads=view.leads)),
            overruled=self._file_settings.count,
        )

    def stop(self) -> None:
        """Ask the gateway to end; ``run`` returns soon after."""
        self._stopping.set()

    async def run(self) -> None:
        """Serve until ``stop``.

        Errors come in an ``ExceptionGroup``: ``StorageError`` if the log on disk differs from the decisions and cannot
        be rebuilt, ``UnknownDecisionError``, ``BusError`` if the bus stays out of reach, ``SupersededError`` if a newer
        run replaced this one.
        """
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(part) for part in (self._engine.run(), self._serve())]
                await self._stopping.wait()
                if self._is_serving:
                    timeout_ms = self._settings.hand_over_timeout_ms
                    await self._heartbeats.hand_over(self._quorum_view, timeout_ms, self._heard())
                for task in tasks:
                    task.cancel()
        finally:
            await self._probes.close()
            self._engine.close()
            self._executor.shutdown(wait=True)
            self._opening.close()
            self._access.close()
        logger.info("stopped")

    async def _serve(self) -> None:
        unreachable_max_ms = self._settings.bus_unreachable_max_ms
        self._phases.begin("opening the metadata log")
        storage = self._storage = await self._opening.storage(self._bus, unreachable_max_ms)
        context = self._context(storage)
        self._phases.begin("reading the state on the bus")
        committed_state = CommittedState(self._bus, self._executor, unreachable_max_ms)
        held = await committed_state.read()
        self._quorum_view.begin_from(held.cluster, storage.end_offset)
        self._deletions.begin_from(held, storage.end_offset)
        applier = DecisionApplier(
            self._identity.gateway, self._quorum_view, self._deletions, self._engine, lambda: storage.end_offset
        )
        limits = self._settings.limits
        server = Server(answering(context), limits, self._gone, door_of(context), decoded_bytes_max, is_quick)
        host, port = self._identity.place
        async with asyncio.TaskGroup() as group:
            group.create_task(storage.failure.raised())
            feed = DecisionFeed(self._bus, storage, applier.apply, self._settings, self._read_watch)
            group.create_task(feed.run())
            group.create_task(committed_state.keep_settled(self._deletions))
            self._phases.begin("reading the decisions on the bus")
            await feed.caught_up.wait()
            await announce_here(context)
            await server.start(host, port)
            self._engine.tell(*first_settings(held.cluster, storage.image), lane=Lane.GATEWAY)
            self._heartbeats.start()
            self._is_serving = True
            self._phases.end()
            told = {"protocol": self._settings.security_protocol, "end_offset": storage.end_offset}
            logger.info("serving", host=host, port=port, **told, changes_by=self._access.changes_by)
            group.create_task(keep_announced(context))
            group.create_task(self._file_settings.run())
            if self._security is not None:
                group.create_task(end_removed_users(self._security, server))
            try:
                await self._live(group)
            finally:
                await server.stop()

    def _context(self, storage: Storage) -> Context:
        """Return what requests are answered with."""
        return Context(
            self._identity,
            self._settings,
            self._engine,
            self._quorum_view,
            storage,
            ResourceLocks(self._settings.answer_timeout_ms),
            self._executor,
            self._read_watch,
            self._probes,
            self._heard_brokers,
            self._access,
            MutationQuotas(time.monotonic),
            self._security,
        )

    async def _live(self, group: asyncio.TaskGroup) -> None:
        """Send heartbeats. Some ask for an answer: a run that never led learns only from it that it was replaced."""
        interval_s = self._settings.gateway_heartbeat_interval_ms / 1000
        stall = StallWatch(self._settings.gateway_heartbeat_interval_ms, self._settings.gateway_lateness_ms_min)
        for number in count():
            stall.begin()
            await asyncio.sleep(interval_s)
            if late_ms := stall.end():
                logger.warning("held up", late_ms=late_ms)
                self._heard_brokers.forgive(late_ms)
                await asyncio.sleep(READ_FIRST_S)
            ask = (lambda beat: group.create_task(self._ask(beat))) if number % ASKING_EVERY == 0 else None
            # A gateway that cannot learn who leads is silent, so the engine soon names another one.
            self._heartbeats.send(late_ms, self._read_watch.why, self._heard(), ask)

    def _heard(self) -> tuple[int, ...]:
        view = self._quorum_view
        live = [number for number, broker in view.brokers.items() if broker.is_serving]
        return self._heard_brokers.told(leads=view.leads, live=live)

    async def _ask(self, heartbeat: GatewayHeartbeat) -> None:
        """Send a heartbeat that asks for an answer, and fail if this run no longer counts.

        If the clock was far ahead when this run started, the engine refused the start as well as the heartbeats. So
        the start is published again.
        """
        with contextlib.suppress(NoAnswerError, QueueFullError):
            if self._counts is False:
                self._heartbeats.start()
            [answer] = await self._engine.ask(heartbeat, lane=Lane.GATEWAY)
            if answer.error == "NONE":
                self._counts = True
                self._deletions.retry_refused()
            if answer.error == "INVALID_REQUEST":
                logger.warning("the engine refuses heartbeats", why=answer.message, hint="is the clock wrong?")
                self._counts = self._counts or False
            if answer.error == "UNSUPPORTED_VERSION":
                raise LevelError(answer.message)
            if answer.error == "STALE_BROKER_EPOCH":
                raise SupersededError(f"gateway {self._identity.gateway} was replaced: {answer.message}")

    def _gone(self, peer: Peer) -> None:
        """Probe a broker whose connection ended, because it may have died."""
        broker = self._quorum_view.disconnected(peer)
        if broker is not None and not self._stopping.is_set():
            self._probes.begin(broker)

    def _registration_of(self, broker: int) -> Registration | None:
        return self._storage.image.brokers.get(broker) if self._storage else None
