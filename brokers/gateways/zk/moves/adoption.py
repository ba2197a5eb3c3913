"""A take-over of a running cluster from the broker that is its controller.

    /controller ◄── taken, so that no broker may write any more
    /brokers/ids, topics, partition states ──► events ──► engine ──► decisions: the cluster as it was

First the engine must answer. Until it does, the cluster's own controller leads. Brokers serve clients meanwhile, as
they do whenever controllers change. A note in ZooKeeper says that the take-over is under way. If the process dies, the
next start finds the note and continues, without what the engine knows already. If the engine refuses anything, the
controller's place is given back, because ZooKeeper is as it was.
"""

import time
import uuid
from collections.abc import Callable, Sequence

import msgspec
import structlog

from brokers.engine.alike_decisions import one_by_one
from brokers.gateways.shared.whole_events import whole_events
from brokers.gateways.zk import znodes
from brokers.gateways.zk.client.session import Session
from brokers.gateways.zk.client.transactions import Set
from brokers.gateways.zk.client.zookeeper_errors import ForbiddenError, RefusedWriteError
from brokers.gateways.zk.cluster_view import ClusterView
from brokers.gateways.zk.mirror.stored import stored_brokers, stored_topics
from brokers.gateways.zk.moves.adopted_topic import adopted
from brokers.gateways.zk.settings import Identity, Settings
from brokers.gateways.zk.term.admin_znodes import asked_by, is_undecided, requests_in
from brokers.gateways.zk.term.bus_note import give_up, is_under_way, noted_anew, under_way
from brokers.gateways.zk.term.first_beats import DueBeats
from brokers.gateways.zk.term.presence import presence_events
from brokers.gateways.zk.znodes import ZnodeError
from bus.clock import now_ms
from bus.interface import MAX_EVENT_BYTES, Bus
from state.adoption_events import AdoptTopic
from state.chunks import chunks
from state.decisions import Answer
from state.event import Event
from state.events import ElectLeaders
from state.ids import topic_id_of

logger = structlog.get_logger()

# How long the engine may take for one call. An engine that starts needs most of it.
DECIDED_TIMEOUT_S = 180.0
# How long to wait for another gateway that is taking over.
OTHERS_TIMEOUT_S = 60.0
_ATTEMPTS_MAX = 5
_POLL_S = 0.05
_ROUNDS_MAX = 20
# The limit of the events in one call to the bus.
CALL_BYTES_MAX = 4 * 1024 * 1024


class AdoptionError(Exception):
    """The cluster cannot be taken over; the message says why. Its own controller leads it."""


def adopt(identity: Identity, settings: Settings, bus: Bus) -> None:
    """Tell the engine what ZooKeeper holds, unless a gateway already leads these brokers. Blocks.

    Raises ``AdoptionError``, ``ZookeeperError`` or ``BusError``.
    """
    session = Session(identity.zookeeper, settings.zookeeper_session_timeout_ms, lambda path: None, lambda why: None)
    session.open(settings.zookeeper_connection_timeout_ms)
    try:
        session.check_cluster(identity.cluster_id)
        for _ in range(_ATTEMPTS_MAX):
            try:
                _adopt(session, identity, settings, bus)
                return
            except RefusedWriteError as error:
                refused = str(error)
                logger.info("another gateway takes over", why=refused)
        raise AdoptionError(f"other gateways interrupt each attempt: {refused}")
    except ZnodeError as error:
        raise AdoptionError(str(error)) from error
    finally:
        session.close()


def _adopt(session: Session, identity: Identity, settings: Settings, bus: Bus) -> None:
    engine = _Engine(bus)
    if not _is_due(session, identity, engine):
        return
    # Without an engine no leader would be elected once the place is taken.
    engine.prove()
    _wait_for_others(session, identity)
    if not _is_due(session, identity, engine):
        return
    epoch = session.take(
        identity.gateway,
        identity.gateways,
        engine.view.controller_epoch,
        now_ms(),
        adopting=True,
        notes=lambda epoch: under_way(session, engine.bus_id),
    )
    logger.info("takes over from another controller", controller_epoch=epoch)
    try:
        if settings.leaders_write_isrs:
            _give_ids(session)
        _Adoption(session, engine, settings.broker_heartbeat_interval_ms).run(epoch)
    except (AdoptionError, ForbiddenError, ZnodeError) as error:
        give_up(session)
        raise AdoptionError(str(error)) from error


def _wait_for_others(session: Session, identity: Identity) -> None:
    """Let another gateway complete its take-over. After a long wait it counts as dead."""
    deadline = time.monotonic() + OTHERS_TIMEOUT_S
    others = identity.gateways - {identity.gateway}
    while session.read(znodes.ADOPTION) is not None and session.former_controller() in others:
        if time.monotonic() > deadline:
            return
        time.sleep(_POLL_S)


def _is_due(session: Session, identity: Identity, engine: "_Engine") -> bool:
    former = session.former_controller()
    if former in identity.gateways:
        if session.read(znodes.ADOPTION) is None:
            return False
        if is_under_way(session, engine.bus_id):
            # No other controller has led since it began.
            return True
    held = session.read(znodes.CONTROLLER)
    if held is not None and znodes.controller_of(held[0]).kraft_controller_epoch >= 0:
        raise AdoptionError(f"controller {former} migrates this cluster to KRaft, and would take it back")
    if engine.view.topics:
        names = ", ".join(sorted(engine.view.topics)[:10])
        raise AdoptionError(f"the bus already has topics ({names}): a cluster is taken over onto an empty bus")
    return True


def _give_ids(session: Session) -> None:
    """Write an id into each topic without one, so that every later reader finds the same id.

    Kafka's own controller keeps the id, even where brokers do not use it.
    """
    for name in session.children(znodes.TOPICS):
        path = znodes.topic_path(name)
        held = session.read(path)
        if held is not None and znodes.topic_of(path, held[0]).topic_id is None:
            text = znodes.with_topic_id(path, held[0], topic_id_of(path, held[1].czxid))
            session.write([Set(path, text, held[1].version)])


class _Engine:
    """The engine at the other end of the bus: events go out, and decisions come back."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self.bus_id = bus.bus_id()
        self._incarnation = uuid.uuid4().hex
        self._count = 0
        image = bus.image()
        self._seq = image.seq
        self.view = ClusterView()
        self.view.begin_with(image)

    def prove(self) -> None:
        """Wait until the engine decides on an event that changes nothing. Raises ``AdoptionError``."""
        self.ask([ElectLeaders(time_ms=now_ms(), election_type="preferred", partitions=())], lambda: None)

    def tell(self, events: Sequence[Event]) -> None:
        """Publish events without waiting for answers."""
        if events:
            self._bus.publish([msgspec.json.encode(event) for event in events])

    def ask(self, events: Sequence[Event], meanwhile: Callable[[], None]) -> list[Answer]:
        """Publish events, and return their answers in order once they are decided. Raises ``AdoptionError``.

        ``meanwhile`` is called again and again until then.
        """
        named = [self._named(event) for event in events]
        texts = [msgspec.json.encode(event) for event in named]
        for event, text in zip(named, texts, strict=True):
            if len(text) > MAX_EVENT_BYTES:
                of = getattr(event, "topic", "")
                raise AdoptionError(f"{of}: the event is larger than the bus takes ({len(text)} bytes)")
        seq = 0
        for part in chunks(((text, len(text)) for text in texts), CALL_BYTES_MAX):
            seq = self._bus.publish(part)
        deadline = time.monotonic() + DECIDED_TIMEOUT_S
        while self._bus.decided_seq() < seq:
            if time.monotonic() > deadline:
                raise AdoptionError(f"no engine decided within {DECIDED_TIMEOUT_S:.0f} s: start one on this bus first")
            meanwhile()
            time.sleep(_POLL_S)
        answers = self._taken_in()
        return [answers[event.request_id] for event in named if event.request_id in answers]

    def _named(self, event: Event) -> Event:
        self._count += 1
        return msgspec.structs.replace(event, request_id=f"{self._incarnation}-{self._count}")

    def _taken_in(self) -> dict[str | int | None, Answer]:
        answers: dict[str | int | None, Answer] = {}
        while events := whole_events(self._bus, self._seq):
            for decision in (decision for event in events for decision in one_by_one(event)):
                self.view.apply(decision)
                if isinstance(decision, Answer):
                    answers[decision.request_id] = decision
            self._seq = events[-1][-1].seq
        self.view.removed.clear()
        return answers


class _Adoption:
    def __init__(self, session: Session, engine: _Engine, interval_ms: int) -> None:
        self._session = session
        self._engine = engine
        self._beats = DueBeats(session, engine.view, interval_ms)

    def _beat(self) -> None:
        self._engine.tell(self._beats.due())

    def run(self, controller_epoch: int) -> None:
        """Take over everything: brokers first, because a leader that the engine does not know would be replaced."""
        brokers = self._brokers()
        topics = self._topics()
        requests = self._requests()
        self._session.write(noted_anew(self._session, self._engine.bus_id, controller_epoch))
        logger.info("took over", brokers=brokers, topics=topics, requests=requests)

    def _brokers(self) -> int:
        for _ in range(_ROUNDS_MAX):
            present = stored_brokers(self._session)
            events = list(presence_events(present, self._engine.view, now_ms(), beat=False))
            if not events:
                return len(present)
            self._engine.ask(events, self._beat)
        raise AdoptionError("the engine does not let the brokers serve")

    def _topics(self) -> int:
        events = []
        for topic in stored_topics(self._session, self._beat):
            # Once the gateway leads, it requests new topics.
            if not topic.is_new and not self._is_known(event := adopted(topic, now_ms())):
                events.append(event)
        answers = self._engine.ask(events, self._beat) if events else []
        for event, answer in zip(events, answers, strict=True):
            if answer.error != "NONE" and not self._is_known(event):
                raise AdoptionError(f"topic {event.topic}: {answer.error}: {answer.message}")
        return len(events)

    def _requests(self) -> int:
        """Pass on what tools asked of the former controller. The list of moves stays for the gateway."""
        found = asked_by(requests_in(self._session), self._engine.view, now_ms())
        events = [event for asked in found for event in asked.events]
        for answer in self._engine.ask(events, self._beat) if events else ():
            if answer.error != "NONE":
                logger.warning("a request is dropped", request=answer.request, why=answer.message)
        for asked in found:
            if asked.path != znodes.REASSIGN_PARTITIONS and not is_undecided(self._session, asked):
                self._session.remove(asked.path)
        return len(events)

    def _is_known(self, event: AdoptTopic) -> bool:
        held = self._engine.view.topics.get(event.topic)
        return held is not None and held.topic_id == event.topic_id
