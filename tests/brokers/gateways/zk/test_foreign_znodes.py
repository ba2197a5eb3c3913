"""Znodes that neither Kafka nor isrflow made, below those of a topic."""

import pytest

from brokers.gateways.zk.cluster_view import ClusterView
from brokers.gateways.zk.mirror import Mirror
from brokers.gateways.zk.session import WRITES_AT_ONCE, Session
from brokers.gateways.zk.transactions import Create, Delete
from brokers.gateways.zk.zookeeper_errors import RefusedWriteError
from tests.brokers.gateways.zk.decided import led, topic
from tests.brokers.gateways.zk.zookeeper import Zookeeper

TOPIC = "/brokers/topics/t"
PLACES = [TOPIC, f"{TOPIC}/partitions", f"{TOPIC}/partitions/1", f"{TOPIC}/partitions/1/state", "/config/topics/t"]


def controlling() -> Session:
    session = Session("none:1", 6_000, lambda path: None, lambda why: None)
    session.open(1_000)
    session.take(100, frozenset({100}), 0, 0)
    return session


def written(session: Session) -> tuple[Mirror, ClusterView]:
    """Write a topic of two partitions, and return what is known of it."""
    mirror, view = Mirror(), ClusterView()
    for decision in (led(), led(partition=1), topic(a="1")):
        view.apply(decision)
    session.write(list(mirror.writes(view, {"t": None}, 1)))
    return mirror, view


def left(zookeeper: Zookeeper) -> list[str]:
    return [path for path in zookeeper.znodes if path.startswith((TOPIC, "/config/topics/"))]


@pytest.mark.parametrize("count", [1, 2 * WRITES_AT_ONCE])
@pytest.mark.parametrize("place", PLACES)
def test_a_topic_goes_with_whatever_is_below_it(zookeeper: Zookeeper, place: str, count: int) -> None:
    session = controlling()
    mirror, view = written(session)
    for number in range(count):
        zookeeper.create(f"{place}/foreign-{number}/below", makepath=True)
    view.apply(topic("deleted"))
    session.write(list(mirror.writes(view, {"t": None}, 1)))
    assert left(zookeeper) == []


def test_what_comes_while_a_topic_goes_is_looked_for_again(
    zookeeper: Zookeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = controlling()
    mirror, view = written(session)
    view.apply(topic("deleted"))
    zookeeper.create(f"{TOPIC}/first")
    more = [f"{TOPIC}/first/second", f"{TOPIC}/third"]
    children = session.children

    def late(path: str) -> list[str]:
        found = children(path)
        # Others make them just after the gateway has looked.
        if more:
            zookeeper.create(more.pop(0))
        return found

    monkeypatch.setattr(session, "children", late)
    session.write(list(mirror.writes(view, {"t": None}, 1)))
    assert left(zookeeper) == []


def test_what_is_removed_by_itself_must_have_nothing_below_it(zookeeper: Zookeeper) -> None:
    session = controlling()
    session.write([Create(TOPIC, b""), Create(f"{TOPIC}/partitions", b"")])
    for remove in (session.remove, lambda path: session.write([Delete(path)])):
        with pytest.raises(RefusedWriteError, match="NotEmptyError"):
            remove(TOPIC)
    assert left(zookeeper) == [TOPIC, f"{TOPIC}/partitions"]
