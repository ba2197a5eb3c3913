"""One term of this gateway as the brokers' controller: from taking ``/controller`` to losing it.

    decisions ──► view ──► ZooKeeper ──► requests to brokers ──► reports ──► engine

ZooKeeper holds a decision before any broker hears of it, so the next controller finds what brokers know.
A term outlives a lost connection to ZooKeeper if there is a new one within ``zookeeper.session.timeout.ms``. Any other
failure of ZooKeeper ends the term. The next term begins with a new epoch, reads ZooKeeper again and tells all brokers
everything, which takes time in a large cluster.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence

import structlog

from brokers.gateways.shared.engine_client import EngineClient
from brokers.gateways.shared.event_queue import Lane
from brokers.gateways.zk import znodes
from brokers.gateways.zk.channels.channels import Channels
from brokers.gateways.zk.channels.requests.building import Sender
from brokers.gateways.zk.client.call import SessionThread, in_own_thread
from brokers.gateways.zk.client.session import Session
from brokers.gateways.zk.client.zookeeper_errors import ZookeeperError
from brokers.gateways.zk.cluster_view import ClusterView, Place
from brokers.gateways.zk.messages import BY_IBP
from brokers.gateways.zk.mirror.mirror import Changes, Mirror, MirrorError, changes_in
from brokers.gateways.zk.mirror.shared_mirror import SharedMirror
from brokers.gateways.zk.mirror.stored import StoredState, load, stored_brokers
from brokers.gateways.zk.settings import Identity, Settings
from brokers.gateways.zk.term.admin_znodes import AdminZnodes, requests_in
from brokers.gateways.zk.term.broker_writes import BrokerWrites
from brokers.gateways.zk.term.cut_off import CutOff
from brokers.gateways.zk.term.first_beats import beat
from brokers.gateways.zk.term.former_topics import former_partitions
from brokers.gateways.zk.term.guarded_tasks import GuardedTasks
from brokers.gateways.zk.term.notes import take_notes
from brokers.gateways.zk.term.presence import presence_events
from brokers.gateways.zk.term.producer_ids import next_producer_id, note_producer_ids
from brokers.gateways.zk.term.rounds import Rounds
from brokers.gateways.zk.term.taking import take_place
from brokers.gateways.zk.term.written_decision import noted_in, text_of
from brokers.gateways.zk.term.written_isrs import WrittenIsrs
from bus.clock import now_ms
from state.decisions import AnyDecision, BrokerDecision, StopReplica
from state.event import Event
from state.registration import Listener

logger = structlog.get_logger()


class NotNamedError(Exception):
    """The engine names another gateway by now."""


class Leadership:
    """The state of a term.

    ``has_caught_up`` gets the note of the newest decision that ZooKeeper holds. It takes in all decisions so far, and
    returns whether the engine names this gateway after them.
    """

    def __init__(
        self,
        identity: Identity,
        settings: Settings,
        engine: EngineClient,
        view: ClusterView,
        bus_id: int,
        has_caught_up: Callable[[bytes], Awaitable[bool]],
    ) -> None:
        self._identity = identity
        self._settings = settings
        self._engine = engine
        self._view = view
        self._bus_id = bus_id
        self._has_caught_up = has_caught_up
        self._loop = asyncio.get_running_loop()
        self.cut_off = CutOff(settings.zookeeper_session_timeout_ms, self._look_again, self._give_up)
        timeout_ms, heard = settings.zookeeper_session_timeout_ms, self.cut_off.hear
        self._session = Session(identity.zookeeper, timeout_ms, self._changed_elsewhere, self._lost_elsewhere, heard)
        self._thread = SessionThread(self._session.close)
        self._call = self._thread.call
        # None unless leaders write their ISRs themselves.
        self._shared = SharedMirror() if settings.leaders_write_isrs else None
        self._mirror = self._shared or Mirror()
        self._sender: Sender | None = None
        self._channels: Channels | None = None
        self._tasks = GuardedTasks(self._end)
        self._published = asyncio.Event()
        self._is_publishing = False
        interval_s = settings.broker_heartbeat_interval_ms / 1000
        self._looks, self._roll_calls = Rounds(interval_s), Rounds(interval_s)
        self._broker_writes = BrokerWrites(
            identity.gateways, engine, view, self._mirror, self._session, self._call, self._write
        )
        self._written_isrs = (
            WrittenIsrs(engine, view, self._shared, self._session, self._call, self._write) if self._shared else None
        )
        self._admin_znodes = AdminZnodes(engine, self._session, self._call)
        # All lower producer ids were handed out before the engine led these brokers.
        self.first_producer_id = 0
        # Why the term is over; None while it is not.
        self.ended: str | None = None

    @property
    def holds_controller(self) -> bool:
        """Whether this term has taken ``/controller`` and not ended since."""
        return self._sender is not None and self.ended is None

    async def begin(self) -> None:
        """Take the controller's place, and tell all brokers everything.

        Raises ``ZookeeperError``, ``ZnodeError``, ``MirrorError``, ``NotNamedError`` or ``BusError``.
        """
        await self._call(self._session.open, self._settings.zookeeper_connection_timeout_ms)
        await self._call(self._session.check_cluster, self._identity.cluster_id)
        # ZooKeeper may have been away for long.
        await self._catch_up()
        epoch = await self._call(take_place, self._session, self._identity, self._bus_id, self._view)
        # From here on no other gateway writes to ZooKeeper. Whatever it wrote was decided before. To a view without
        # those decisions, a new topic would look like a deleted one.
        await self._catch_up()
        here, name = self._identity.here, self._settings.inter_broker_listener_name
        versions = BY_IBP[self._settings.inter_broker_protocol_version]
        self._sender = Sender(self._identity.gateway, epoch, Listener(name, here.host, here.port), name, versions)
        await self._keep_place()
        interval_ms = self._settings.broker_heartbeat_interval_ms
        beating = self._tasks.begin(beat(self._session, self._view, self._tell, interval_ms))
        await self._broker_writes.begin()
        written = await self._call(self._load)
        self._report(written)
        kept = self._mirror.topics - set(self._mirror.strangers(self._view))
        await self._write(dict.fromkeys(sorted(kept | self._view.topics.keys())))
        self._go_on()
        self._channels = Channels(
            self._view, self._sender, self._engine, self._settings, self._published, self._tasks.guarded
        )
        self._channels.sync()
        self._tasks.begin(self._broker_writes.follow_defaults(is_removal_known=False))
        self._tasks.begin(self._watch_brokers())
        self._tasks.begin(self._watch(self._channels))
        beating.cancel()
        logger.info("leads", controller_epoch=epoch)

    async def _catch_up(self) -> None:
        if not await self._has_caught_up(await self._call(noted_in, self._session)):
            raise NotNamedError("the engine names another gateway by now")

    async def end(self) -> None:
        """End the term. The controller's znode stays, so that no broker takes its place."""
        self._end("ended")
        self.cut_off.stop()
        await self._tasks.close()
        if self._channels is not None:
            await self._channels.close()
        await self._thread.close()

    async def publish(self, events: Sequence[Sequence[AnyDecision]], apply: Callable[[], None]) -> None:
        """Have ``apply`` take ``events`` into the view, then write them to ZooKeeper and tell the brokers."""
        assert self._channels is not None
        self._published.clear()
        self._is_publishing = True
        apply()
        decisions = [decision for event in events for decision in event]
        try:
            await self._write(changes_in(decisions))
        except (ZookeeperError, MirrorError) as error:
            self._end(str(error))
            return
        for event in events:
            self._channels.tell(event)
        # A broker that is back has no channel yet, and the event that let it in may order it to remove logs.
        self._channels.sync([decision for decision in decisions if isinstance(decision, StopReplica)])
        self._is_publishing = False
        self._go_on()
        if any(isinstance(decision, BrokerDecision) for decision in decisions):
            self._roll_calls.change()

    def report_now(self) -> None:
        """Report all of the brokers' answers so far to the engine."""
        if self._channels:
            self._channels.report_now()

    async def note_producer_ids(self, next_id: int) -> None:
        """Note in ZooKeeper that all ids below ``next_id`` are taken. Raises ``ZookeeperError`` or ``ZnodeError``."""
        await self._call(note_producer_ids, self._session, self._identity.gateway, next_id)

    async def _write(self, changes: Changes) -> None:
        assert self._sender is not None
        self._broker_writes.hold_back()
        writes = list(self._mirror.writes(self._view, changes, self._sender.controller_epoch))
        if writes:
            newest = self._view.newest
            await self._call(self._session.write, writes, None if newest is None else text_of(self._bus_id, newest))

    def _load(self) -> dict[Place, StoredState]:
        """Read topics and producer ids from ZooKeeper. Return the states that leaders wrote, unknown to the engine."""
        self._view.former = {}
        written: dict[Place, StoredState] = {}
        for topic in load(self._session, self._mirror):
            self._view.former |= former_partitions(topic, self._view)
            if self._shared is not None:
                written |= self._shared.begin_with(self._view, topic)
        self.first_producer_id = next_producer_id(self._session)
        return written

    # ISRs that leaders wrote

    def _report(self, written: Mapping[Place, StoredState]) -> None:
        """Tell the engine what leaders wrote. Brokers are told nothing until all of it is decided."""
        if self._written_isrs is None or not written:
            return
        self._published.clear()
        self._written_isrs.hold(written)
        for place, stored in written.items():
            self._tasks.begin(self._reported(self._written_isrs, place, stored))

    async def _reported(self, written: WrittenIsrs, place: Place, stored: StoredState) -> None:
        await written.report(place, stored)
        self._go_on()

    def _go_on(self) -> None:
        """Let channels send, unless a leader wrote an ISR that is not decided yet."""
        is_held = self._shared is not None and len(self._shared.held) > 0
        if not is_held and not self._is_publishing:
            self._published.set()

    # What happens in ZooKeeper

    async def _watch_brokers(self) -> None:
        """Tell the engine which brokers are alive, at each change and at each interval."""
        while True:
            is_due = self._roll_calls.begin()
            # A write in the session's own thread may outlast the brokers' sessions with the engine.
            present = await in_own_thread(stored_brokers, self._session, True)
            self._tell(list(presence_events(present, self._view, now_ms(), beat=is_due)))
            await self._roll_calls.wait()

    async def _watch(self, channels: Channels) -> None:
        """Look at what brokers and tools wrote, at each change and at each interval."""
        while True:
            self._looks.begin()
            for name in await self._broker_writes.new_topics():
                self._tasks.begin(self._broker_writes.ask_for(name))
            for entity in await self._broker_writes.changed_configs():
                kind, name = entity
                if kind == "topics" and name in self._view.topics:
                    self._tasks.begin(self._broker_writes.alter_config(name))
                elif entity == znodes.ALL_BROKERS:
                    self._tasks.begin(self._broker_writes.follow_defaults())
            if self._written_isrs is not None:
                self._report(await self._written_isrs.changed())
            noted = await self._call(take_notes, self._session, znodes.LOG_DIR_EVENTS, znodes.noting_broker_in)
            for broker in set(noted):
                logger.warning("a broker lost a log directory", broker=broker)
                channels.ask_again(broker)
            requests = await self._call(requests_in, self._session, watch=True)
            for one in self._admin_znodes.news(requests, self._view, now_ms()):
                self._tasks.begin(self._admin_znodes.carry_out(one))
            await self._looks.wait()

    def _tell(self, events: Sequence[Event]) -> None:
        # An event that finds no room is found again at the next comparison.
        self._engine.tell_if_room(*events, lane=Lane.BROKER)

    def _look_again(self) -> None:
        """Look at everything, because changes went unnoticed without a connection, and no watch is left."""
        if self.holds_controller:
            self._tasks.begin(self._keep_place())
            self._looks.change()
            self._roll_calls.change()

    async def _keep_place(self) -> None:
        await self._call(self._session.keep_place)

    # The end

    def _give_up(self) -> None:
        self._end(f"ZooKeeper was out of reach for {self._settings.zookeeper_session_timeout_ms} ms")
        self._thread.begin_to_close()

    def _end(self, why: str) -> None:
        if self.ended is None:
            self.ended = why

    def _changed_elsewhere(self, path: str) -> None:
        rounds = self._roll_calls if path.startswith(znodes.BROKERS) else self._looks
        with contextlib.suppress(RuntimeError):
            # The loop may be closed when the client calls this.
            self._loop.call_soon_threadsafe(rounds.change)

    def _lost_elsewhere(self, why: str) -> None:
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._end, why)
