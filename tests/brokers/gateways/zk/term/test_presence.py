"""Which events follow from brokers' znodes in ZooKeeper, and from what brokers write there."""

from typing import Any

from brokers.gateways.zk.cluster_view import ClusterView
from brokers.gateways.zk.term.broker_writes import alteration, creation
from brokers.gateways.zk.term.presence import presence_events
from brokers.gateways.zk.znodes import BrokerZnode, TopicZnode
from state.decisions import BrokerDecision
from state.registration import Listener
from tests.brokers.gateways.zk.decided import broker


def znode(number: int, epoch: int = 0) -> BrokerZnode:
    return BrokerZnode(number, 1_000 * number + epoch, (Listener("PLAINTEXT", f"host-{number}", 9_092),), None)


def events(present: list[BrokerZnode], *known: BrokerDecision, beat: bool = False) -> list[tuple[Any, ...]]:
    view = ClusterView()
    for decision in known:
        view.apply(decision)
    found = presence_events({one.broker: one for one in present}, view, 5, beat=beat)
    return [
        (one.broker, one.incarnation) if hasattr(one, "incarnation") else (one.broker, one.broker_epoch, one.want_fence)
        for one in found
    ]


def test_a_new_broker_registers_with_its_epoch_in_zookeeper() -> None:
    assert events([znode(1)]) == [(1, "1000")]


def test_a_registered_broker_is_unfenced_and_then_heard_from_time_to_time() -> None:
    assert events([znode(1)], broker(1, "fenced")) == [(1, 10, False)]
    assert events([znode(1)], broker(1)) == []
    assert events([znode(1)], broker(1), beat=True) == [(1, 10, False)]


def test_a_broker_whose_znode_is_gone_is_fenced() -> None:
    assert events([], broker(1), broker(2, "shutdown_allowed"), broker(3, "fenced")) == [
        (1, 10, True),
        (2, 20, True),
    ]


def test_another_start_of_a_broker_registers_again() -> None:
    assert events([znode(1, 7)], broker(1)) == [(1, "1007")]


def test_a_broker_with_other_listeners_registers_again() -> None:
    moved = BrokerZnode(1, 1_000, (Listener("PLAINTEXT", "elsewhere", 1),), None)
    assert events([moved], broker(1)) == [(1, "1000")]


def test_an_assignment_that_a_broker_wrote_is_asked_for_as_it_is() -> None:
    event = creation("t", TopicZnode({1: (2, 1), 0: (1, 2)}), {"a": "1"}, frozenset({100}), 5)
    assert event.assignment == {"0": (1, 2), "1": (2, 1)}
    assert (event.config, event.partitions) == ({"a": "1"}, None)


def test_the_engine_assigns_where_a_broker_assigned_to_the_gateway() -> None:
    event = creation("t", TopicZnode({0: (1, 2), 1: (2, 100)}), {}, frozenset({100}), 5)
    assert (event.assignment, event.partitions, event.replication_factor) == (None, 2, 2)


def test_settings_that_a_broker_wrote_are_asked_for() -> None:
    event = alteration("t", {"a": "1", "b": "2", "c": "3"}, {"a": "1", "b": "5", "d": "6"}, 5)
    assert event is not None
    assert event.config == {"b": "5", "c": None, "d": "6"}
    assert alteration("t", {"a": "1"}, {"a": "1"}, 5) is None
