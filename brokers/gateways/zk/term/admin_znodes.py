"""Requests that tools of Kafka before 2.4 write into ``/admin``: deletions, moves, preferred elections."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import msgspec
import structlog

from brokers.gateways.shared.engine_client import EngineClient, NoAnswerError
from brokers.gateways.shared.event_queue import Lane, QueueFullError
from brokers.gateways.zk import znodes
from brokers.gateways.zk.client.call import Call
from brokers.gateways.zk.client.session import Session
from brokers.gateways.zk.client.transactions import Set
from brokers.gateways.zk.client.zookeeper_errors import ControllerMovedError, RefusedWriteError
from brokers.gateways.zk.cluster_view import ClusterView, Place
from brokers.gateways.zk.topic_size import complaints_about_moves
from brokers.gateways.zk.znodes import ZnodeError
from state.event import AdminEvent
from state.events import AlterReassignment, DeleteTopic, ElectLeaders, TopicPartition

logger = structlog.get_logger()


Moves = Mapping[Place, tuple[int, ...]]
_NO_MOVES: Moves = MappingProxyType({})


class Text(NamedTuple):
    """The text of a znode, at a version. ``made_by`` is the transaction that made the znode."""

    data: bytes
    version: int
    made_by: int


class Asked(NamedTuple):
    """A znode, and its requests that are not done. It stays while some of its moves are ``under_way``.

    ``shorter`` removes all other moves from it; None if there are no others. While one of the topics' znodes
    ``undecided`` is there, the request waits until the engine has decided about that topic.
    """

    path: str
    events: list[AdminEvent]
    under_way: Moves = _NO_MOVES
    shorter: Set | None = None
    undecided: tuple[str, ...] = ()


class Requests(NamedTuple):
    """What ``/admin`` holds: the topics to delete, and the texts of the other znodes, by path."""

    deletions: list[str]
    texts: dict[str, Text]


def requests_in(session: Session, *, watch: bool = False) -> Requests:
    """Read all requests. Any thread may call this, because it does not use the view. Raises ``ZookeeperError``."""
    deletions = session.children(znodes.DELETE_TOPICS, watch)
    held = {path: session.read(path, watch) for path in (znodes.REASSIGN_PARTITIONS, znodes.PREFERRED_REPLICA_ELECTION)}
    texts = {path: Text(one[0], one[1].version, one[1].czxid) for path, one in held.items() if one is not None}
    return Requests(deletions, texts)


def asked_by(requests: Requests, view: ClusterView, time_ms: int) -> list[Asked]:
    """Return what to ask the engine. An unreadable request asks nothing.

    Only the thread that changes the view may call this, because it goes through the partitions of topics.
    """
    found = []
    for name in requests.deletions:
        path, topic = f"{znodes.DELETE_TOPICS}/{name}", view.topics.get(name)
        if topic is None:
            # A tool may just have written it.
            found.append(Asked(path, [], undecided=(znodes.topic_path(name),)))
        else:
            found.append(Asked(path, [DeleteTopic(time_ms=time_ms, topic=name, topic_id=topic.topic_id)]))
    for path, read in ((znodes.REASSIGN_PARTITIONS, _moves), (znodes.PREFERRED_REPLICA_ELECTION, _election)):
        if (text := requests.texts.get(path)) is not None:
            try:
                found.append(read(text, view, time_ms))
            except ZnodeError as error:
                logger.warning("a request cannot be read", why=str(error))
                found.append(Asked(path, []))
    return found


def _moves(text: Text, view: ClusterView, time_ms: int) -> Asked:
    """Ask for the moves that have not begun. For tools, a move has ended once it is no longer listed."""
    events: list[AdminEvent] = []
    under_way: dict[Place, tuple[int, ...]] = {}
    unknown: dict[Place, tuple[int, ...]] = {}
    moves = znodes.reassignments_of(text.data)
    refused = complaints_about_moves(view, moves)
    for message in refused.values():
        logger.warning("moves are refused", why=message)
    for place, replicas in moves.items():
        if place.topic in refused:
            continue
        if place.topic not in view.topics:
            unknown[place] = replicas
            continue
        held = view.partition(place)
        if held is None or tuple(one for one in held.replicas if one not in held.removing_replicas) != replicas:
            events.append(
                AlterReassignment(time_ms=time_ms, topic=place.topic, partition=place.partition, replicas=replicas)
            )
        elif held.adding_replicas or held.removing_replicas:
            under_way[place] = replicas
    left = under_way | unknown
    shorter = Set(znodes.REASSIGN_PARTITIONS, _text_of(left), text.version) if len(left) < len(moves) else None
    undecided = dict.fromkeys(znodes.topic_path(place.topic) for place in unknown)
    return Asked(znodes.REASSIGN_PARTITIONS, events, under_way, shorter, tuple(undecided))


def _text_of(moves: Moves) -> bytes:
    listed = [{"topic": place.topic, "partition": place.partition, "replicas": to} for place, to in moves.items()]
    return msgspec.json.encode({"version": 1, "partitions": listed})


def _election(text: Text, view: ClusterView, time_ms: int) -> Asked:
    partitions = tuple(
        TopicPartition(place.topic, place.partition)
        for place in znodes.places_of(znodes.PREFERRED_REPLICA_ELECTION, text.data)
    )
    return Asked(
        znodes.PREFERRED_REPLICA_ELECTION,
        [ElectLeaders(time_ms=time_ms, election_type="preferred", partitions=partitions)] if partitions else [],
    )


def is_undecided(session: Session, asked: Asked) -> bool:
    """Return whether a request is about a topic that the engine may yet make. Raises ``ZookeeperError``."""
    return any(session.read(path) is not None for path in asked.undecided)


class AdminZnodes:
    """The requests in ``/admin``: each is passed on to the engine, and removed when it is answered.

    A move stays until it has ended. A move that another request replaced or cancelled has ended too, because the newest
    request counts (``KafkaController.maybeRemoveFromZkReassignment``).
    """

    def __init__(self, engine: EngineClient, session: Session, call: Call) -> None:
        self._engine = engine
        self._session = session
        self._call = call
        # The znodes whose requests are under way.
        self._busy: set[str] = set()
        # The transaction that made the list of moves, and its moves that were passed on or found under way.
        self._list_made_by: int | None = None
        self._known: set[tuple[Place, tuple[int, ...]]] = set()

    def news(self, requests: Requests, view: ClusterView, time_ms: int) -> list[Asked]:
        """Return the requests that are not under way yet. The caller passes each of them to ``carry_out``."""
        moves = requests.texts.get(znodes.REASSIGN_PARTITIONS)
        made_by = None if moves is None else moves.made_by
        if made_by != self._list_made_by:
            self._known.clear()
        self._list_made_by = made_by
        found = asked_by(requests, view, time_ms)
        # Moves may have begun before this term.
        self._known.update(move for asked in found for move in asked.under_way.items())
        news = [asked for asked in found if asked.path not in self._busy]
        self._busy.update(asked.path for asked in news)
        return news

    async def carry_out(self, asked: Asked) -> None:
        """Ask the engine, and remove requests that have ended. Raises ``ZookeeperError``."""
        events = [event for event in asked.events if _move_in(event) not in self._known]
        try:
            answers = await self._engine.ask(*events, lane=Lane.ADMIN) if events else []
            for event, answer in zip(events, answers, strict=True):
                logger.info("asked in ZooKeeper", path=asked.path, answer=answer.error, why=answer.message)
                if (move := _move_in(event)) is not None:
                    self._known.add(move)
            if asked.path == znodes.REASSIGN_PARTITIONS and events:
                # The next look shows whether they are under way.
                return
            if not asked.under_way and not await self._call(is_undecided, self._session, asked):
                await self._call(self._session.remove, asked.path)
            elif asked.shorter is not None:
                await self._shorten(asked.shorter)
        except (NoAnswerError, QueueFullError) as error:
            logger.warning("a request in ZooKeeper is not answered yet", path=asked.path, why=str(error))
        finally:
            self._busy.discard(asked.path)

    async def _shorten(self, shorter: Set) -> None:
        try:
            await self._call(self._session.write, [shorter])
        except ControllerMovedError:
            raise
        except RefusedWriteError as error:
            # A tool has written the list meanwhile.
            logger.info("a list of moves is read again", why=str(error))


def _move_in(event: AdminEvent) -> tuple[Place, tuple[int, ...]] | None:
    if not isinstance(event, AlterReassignment) or event.replicas is None:
        return None
    return Place(event.topic, event.partition), event.replicas
