"""Brokers and topics in ZooKeeper, as any controller left them."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import structlog

from brokers.gateways.zk import znodes
from brokers.gateways.zk.client.session import Session
from brokers.gateways.zk.cluster_view import Place
from brokers.gateways.zk.mirror.mirror import Mirror
from brokers.gateways.zk.znodes import BrokerZnode, StateZnode, ZnodeError

logger = structlog.get_logger()

T = TypeVar("T")
# Topics are read in parts, so that not all of them are in memory at once.
TOPICS_AT_ONCE = 100


class StoredState(NamedTuple):
    """A partition's leader and ISR. The version of its znode is the partition epoch that brokers use.

    ``zxid`` is the transaction that wrote it.
    """

    state: StateZnode
    version: int
    zxid: int | None = None


class StoredTopic(NamedTuple):
    """A topic; ``config`` is None if ZooKeeper has no settings of it. Only partitions that were led have a state.

    ``directories`` are the partitions with one below ``partitions/``, None if the topic has no ``partitions/``.
    ``unreadable`` is why its settings cannot be read, if it has unreadable ones.
    """

    name: str
    text: bytes
    config: dict[str, str] | None
    states: dict[int, StoredState]
    directories: frozenset[int] | None = None
    unreadable: str | None = None

    @property
    def is_new(self) -> bool:
        """Whether a broker wrote the topic for its controller. No broker makes ``partitions/``."""
        return self.directories is None and not self.states


def stored_topics(session: Session, meanwhile: Callable[[], None] = lambda: None) -> Iterator[StoredTopic]:
    """Read all topics, some at a time. ``meanwhile`` is called again and again.

    Raises ``ZookeeperError`` or ``ZnodeError``.
    """
    names = session.children(znodes.TOPICS)
    for first in range(0, len(names), TOPICS_AT_ONCE):
        yield from _stored(session, names[first : first + TOPICS_AT_ONCE], meanwhile)


def _stored(session: Session, names: Sequence[str], meanwhile: Callable[[], None]) -> Iterator[StoredTopic]:
    def each(answers: Iterator[T]) -> Iterator[T]:
        for answer in answers:
            meanwhile()
            yield answer

    texts = list(each(session.read_each(map(znodes.topic_path, names))))
    configs = list(each(session.read_each(map(_config_path, names))))
    children = each(session.children_of_each(f"{znodes.topic_path(name)}/partitions" for name in names))
    directories = [_directories(session, name, found) for name, found in zip(names, children, strict=True)]
    places = [Place(name, one) for name, found in zip(names, directories, strict=True) for one in sorted(found or ())]
    states: dict[str, dict[int, StoredState]] = {name: {} for name in names}
    for place, held in zip(places, each(session.read_each(map(znodes.state_path, places))), strict=True):
        if held is not None:
            states[place.topic][place.partition] = _state(place, held)
    for name, text, config, found in zip(names, texts, configs, directories, strict=True):
        if text is not None:
            settings, unreadable = _config(name, config)
            yield StoredTopic(name, text[0], settings, states[name], found, unreadable)


def _config(topic: str, held: tuple[bytes, Any] | None) -> tuple[dict[str, str] | None, str | None]:
    """Return a topic's settings, or why they cannot be read."""
    try:
        return _config_in(topic, held), None
    except ZnodeError as error:
        return None, str(error)


def _directories(session: Session, topic: str, children: Sequence[str]) -> frozenset[int] | None:
    """Return the partitions that have a directory. Other children are left alone."""
    path = f"{znodes.topic_path(topic)}/partitions"
    found = set()
    for child in children:
        try:
            found.add(znodes.number_in(f"{path}/{child}"))
        except ZnodeError as error:
            logger.warning("a znode that no partition has", why=str(error))
    return frozenset(found) if children or session.read(path) is not None else None


def stored_state(session: Session, place: Place) -> StoredState | None:
    """Read a partition's state; None if it never had a leader. Raises ``ZookeeperError`` or ``ZnodeError``."""
    held = session.read(znodes.state_path(place))
    return None if held is None else _state(place, held)


def _state(place: Place, held: tuple[bytes, Any]) -> StoredState:
    text, stat = held
    return StoredState(znodes.state_of(znodes.state_path(place), text), stat.version, stat.mzxid)


def load(session: Session, mirror: Mirror) -> Iterator[StoredTopic]:
    """Note in ``mirror`` what ZooKeeper holds of topics, and yield each topic, even with unreadable settings.

    Raises ``ZookeeperError`` or ``ZnodeError``.
    """
    for topic in stored_topics(session):
        versions = {number: one.version for number, one in topic.states.items()}
        mirror.found(topic.name, topic.text, topic.config, versions, topic.directories)
        if topic.unreadable is not None:
            # The decided settings replace them if the engine knows the topic. Otherwise they stay.
            logger.warning("settings of a topic cannot be read", why=topic.unreadable)
            mirror.found_settings(topic.name)
        yield topic
    for name in session.children(znodes.TOPIC_CONFIGS):
        if name not in mirror.topics:
            mirror.found_settings(name)


def topic_config(session: Session, topic: str) -> dict[str, str] | None:
    """Read a topic's settings; None if ZooKeeper has none. Raises ``ZookeeperError`` or ``ZnodeError``."""
    return _config_in(topic, session.read(_config_path(topic)))


def _config_path(topic: str) -> str:
    return f"{znodes.TOPIC_CONFIGS}/{topic}"


def _config_in(topic: str, held: tuple[bytes, Any] | None) -> dict[str, str] | None:
    return None if held is None else znodes.config_of(_config_path(topic), held[0])


def stored_brokers(session: Session, watch: bool = False) -> dict[int, BrokerZnode]:
    """Read the brokers' registrations. An unreadable one is left out. Raises ``ZookeeperError``."""
    found: dict[int, BrokerZnode] = {}
    for name in session.children(znodes.BROKERS, watch):
        path = f"{znodes.BROKERS}/{name}"
        held = session.read(path)
        if held is None:
            continue
        try:
            broker = znodes.broker_of(path, held[0], held[1].czxid)
        except ZnodeError as error:
            logger.warning("a broker that cannot be read", why=str(error))
            continue
        found[broker.broker] = broker
    return found
