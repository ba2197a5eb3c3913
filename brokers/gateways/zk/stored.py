"""What ZooKeeper holds of brokers and topics, as any controller left it."""

from collections.abc import Iterator
from typing import NamedTuple

import structlog

from brokers.gateways.zk import znodes
from brokers.gateways.zk.cluster_view import Place
from brokers.gateways.zk.mirror import Mirror
from brokers.gateways.zk.session import Session
from brokers.gateways.zk.znodes import BrokerZnode, StateZnode, ZnodeError

logger = structlog.get_logger()


class StoredState(NamedTuple):
    """A partition's leader and ISR. The version of its znode is the partition epoch that brokers use.

    ``zxid`` is the transaction that wrote it.
    """

    state: StateZnode
    version: int
    zxid: int | None = None


class StoredTopic(NamedTuple):
    """A topic; ``config`` is None if ZooKeeper has no settings of it. Only partitions that were led have a state.

    ``unreadable`` says why its settings cannot be read, if they are there and cannot.

    ``directories`` are the partitions that have one below ``partitions/``, None if the topic has none of these.
    """

    name: str
    text: bytes
    config: dict[str, str] | None
    states: dict[int, StoredState]
    directories: frozenset[int] | None = None
    unreadable: str | None = None

    @property
    def is_new(self) -> bool:
        """Say whether a broker wrote it for a controller to find. No broker makes ``partitions/``."""
        return self.directories is None and not self.states


def stored_topics(session: Session) -> Iterator[StoredTopic]:
    """Read all topics. Raises ``ZookeeperError`` or ``ZnodeError``."""
    for name in session.children(znodes.TOPICS):
        path = znodes.topic_path(name)
        held = session.read(path)
        if held is None:
            continue
        config, unreadable = _config(session, name)
        directories = _directories(session, f"{path}/partitions")
        states: dict[int, StoredState] = {}
        for number in sorted(directories or ()):
            found = stored_state(session, Place(name, number))
            if found is not None:
                states[number] = found
        yield StoredTopic(name, held[0], config, states, directories, unreadable)


def _config(session: Session, topic: str) -> tuple[dict[str, str] | None, str | None]:
    """Read a topic's settings, or say why they cannot be read."""
    try:
        return topic_config(session, topic), None
    except ZnodeError as error:
        return None, str(error)


def _directories(session: Session, path: str) -> frozenset[int] | None:
    """Return which partitions have a directory. What is no partition's is left alone."""
    children = session.children(path)
    found = set()
    for child in children:
        try:
            found.add(znodes.number_in(f"{path}/{child}"))
        except ZnodeError as error:
            logger.warning("a znode that no partition has", why=str(error))
    return frozenset(found) if children or session.read(path) is not None else None


def stored_state(session: Session, place: Place) -> StoredState | None:
    """Read who leads a partition; None if nobody ever did. Raises ``ZookeeperError`` or ``ZnodeError``."""
    path = znodes.state_path(place)
    found = session.read(path)
    return None if found is None else StoredState(znodes.state_of(path, found[0]), found[1].version, found[1].mzxid)


def load(session: Session, mirror: Mirror) -> Iterator[StoredTopic]:
    """Note in ``mirror`` what ZooKeeper holds of topics, and yield each one. Unreadable settings do not stop it.

    Raises ``ZookeeperError`` or ``ZnodeError``.
    """
    for topic in stored_topics(session):
        versions = {number: one.version for number, one in topic.states.items()}
        mirror.found(topic.name, topic.text, topic.config, versions, topic.directories)
        if topic.unreadable is not None:
            # What was decided is written over them if a gateway leads the topic, and nothing if nobody does.
            logger.warning("settings of a topic cannot be read", why=topic.unreadable)
            mirror.found_settings(topic.name)
        yield topic
    for name in session.children(znodes.TOPIC_CONFIGS):
        if name not in mirror.topics:
            mirror.found_settings(name)


def topic_config(session: Session, topic: str) -> dict[str, str] | None:
    """Read a topic's settings; None if ZooKeeper has none. Raises ``ZookeeperError`` or ``ZnodeError``."""
    path = f"{znodes.TOPIC_CONFIGS}/{topic}"
    held = session.read(path)
    return None if held is None else znodes.config_of(path, held[0])


def stored_brokers(session: Session, watch: bool = False) -> dict[int, BrokerZnode]:
    """Read which brokers are there. One that cannot be read is left out. Raises ``ZookeeperError``."""
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
