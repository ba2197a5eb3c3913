"""The epochs of a state change: requested, received, completed; and a slow broker's backlog."""

from typing import Any

import pytest

from state.view import view_of
from tests.support.world import World


@pytest.fixture
def trio() -> World:
    world = World(1, 2, 3)
    world.create("t", (1, 2, 3))
    return world


def report(world: World, broker: int, outcome: str, leader_epoch: int, **fields: Any) -> None:
    epoch = world.broker(broker).broker_epoch
    where = {"topic": "t", "partition": 0, "broker": broker, "broker_epoch": epoch, "leader_epoch": leader_epoch}
    world.publish("replica_report", **(where | {"outcome": outcome} | fields))


def all_report(world: World, *brokers: int) -> None:
    partition = world.partition("t")
    for broker in brokers:
        outcome = "leader" if broker == partition.leader else "follower"
        report(world, broker, outcome, partition.leader_epoch)


def way(world: World) -> dict[str, dict[str, int]]:
    """Return the epochs requested of each replica, received and completed."""
    topic = world.state.topics.get("t")
    assert topic is not None
    shown = view_of(world.state.cluster, [topic])["partitions"][0]
    return {name: shown[f"{name}_epochs"] for name in ("requested", "received", "completed")}


def test_the_life_of_a_state_change(trio: World) -> None:
    """Difference 7 of the replication design V2: requested, received and completed, each with its epoch."""
    assert way(trio) == {"requested": {"1": 0, "2": 0, "3": 0}, "received": {}, "completed": {}}
    report(trio, 2, "error", 0, error="FENCED_LEADER_EPOCH")
    assert way(trio)["received"] == {"2": 0}
    assert way(trio)["completed"] == {}
    all_report(trio, 1, 2)
    assert way(trio) == {
        "requested": {"1": 0, "2": 0, "3": 0},
        "received": {"1": 0, "2": 0},
        "completed": {"1": 0, "2": 0},
    }


def test_the_backlog_is_what_was_requested_and_not_completed(trio: World) -> None:
    assert trio.state.cluster.backlog == {1: 1, 2: 1, 3: 1}
    all_report(trio, 1, 2, 3)
    assert trio.state.cluster.backlog == {}
    trio.fence(1)
    assert trio.state.cluster.backlog == {2: 1, 3: 1}
    all_report(trio, 2)
    assert trio.state.cluster.backlog == {3: 1}


def test_the_backlog_is_stored_in_order_of_broker_and_without_zeros() -> None:
    world = World(1, 2, 3)
    world.create("t", (3, 1, 2))
    assert list(world.state.cluster.backlog.items()) == [(1, 1), (2, 1), (3, 1)]
    report(world, 3, "leader", 0)
    assert list(world.state.cluster.backlog.items()) == [(1, 1), (2, 1)]


def test_only_the_newest_request_counts(trio: World) -> None:
    all_report(trio, 1, 2)
    trio.fence(1)
    trio.beat(1)
    trio.fence(2)
    assert trio.partition("t").leader_epoch == 2
    assert way(trio)["requested"] == {"1": 2, "2": 1, "3": 2}
    assert trio.state.cluster.backlog[3] == 1
    report(trio, 3, "leader", 1)
    assert trio.state.cluster.backlog[3] == 1, "an older one does not do"
    report(trio, 3, "leader", 2)
    assert 3 not in trio.state.cluster.backlog


def test_a_broker_that_does_not_serve_is_asked_for_nothing_until_it_returns(trio: World) -> None:
    all_report(trio, 1, 2, 3)
    trio.fence(3)
    assert (way(trio)["requested"]["3"], 3 in trio.state.cluster.backlog) == (0, False)
    trio.beat(3)
    assert (way(trio)["requested"]["3"], trio.state.cluster.backlog[3]) == (1, 1)


def test_an_undecided_epoch_in_a_report_is_ignored(trio: World) -> None:
    report(trio, 1, "leader", 9)
    assert way(trio)["received"] == way(trio)["completed"] == {}


def test_a_lost_log_is_received_and_not_completed(trio: World) -> None:
    all_report(trio, 1, 2, 3)
    trio.fence(1)
    report(trio, 3, "offline", 1)
    assert way(trio)["received"]["3"] == 1
    assert way(trio)["completed"]["3"] == 0


def test_replicas_keep_their_progress_when_the_assignment_changes(trio: World) -> None:
    trio.join(4)
    all_report(trio, 1, 2, 3)
    trio.publish("alter_reassignment", topic="t", partition=0, replicas=[4, 3, 2])
    assert way(trio)["completed"] == {"1": 0, "2": 0, "3": 0}
    assert way(trio)["requested"] == {"1": 1, "2": 1, "3": 1, "4": 1}
    assert trio.state.cluster.backlog == {1: 1, 2: 1, 3: 1, 4: 1}


def test_a_deleted_topic_is_in_no_backlog(trio: World) -> None:
    trio.publish("delete_topic", topic="t")
    assert trio.state.cluster.backlog == {}


def test_the_view_shows_each_brokers_backlog(trio: World) -> None:
    trio.create("u", (3, 2))
    all_report(trio, 2)
    view = view_of(trio.state.cluster, [t for n in trio.state.topics.names() if (t := trio.state.topics.get(n))])
    assert {b["broker"]: b["backlog"] for b in view["brokers"]} == {1: 1, 2: 1, 3: 2}
    assert trio.state.cluster.backlog == {1: 1, 2: 1, 3: 2}


def test_unregistered_brokers_and_those_behind_gateways_owe_no_reports(trio: World) -> None:
    trio.publish("broker_unregister", broker=3)
    trio.register(2, behind_gateway=True)
    counted = trio.state.cluster.backlog
    assert counted == {1: 1, 2: 1, 3: 1}
    assert trio.state.cluster.shown_backlog(counted) == {1: 1, 2: 0}


def test_a_broker_away_at_a_partitions_creation_owes_no_report() -> None:
    world = World(1, 2, 3)
    world.fence(3)
    world.create("t", (1, 2, 3))
    assert way(world)["requested"] == {"1": 0, "2": 0}
    world.beat(3)
    assert way(world)["requested"] == {"1": 0, "2": 0, "3": 0}


def test_a_replica_that_lost_its_log_is_not_asked_for_the_epoch_after_it(trio: World) -> None:
    report(trio, 3, "offline", 0)
    assert way(trio)["requested"] == {"1": 1, "2": 1, "3": 0}
