"""An election names the replicas that it passed over, and why."""

from state.decisions import LeaderAndIsr
from tests.support.world import World


def world_of(*brokers: int) -> World:
    world = World()
    world.publish("controller_started", controller_id="c", controller_epoch=1)
    world.tick()
    for broker in brokers:
        world.join(broker)
    return world


def test_it_names_a_fenced_leader_and_a_replica_that_is_not_in_sync() -> None:
    world = world_of(1, 2, 3)
    world.create("t", (1, 2, 3))
    world.alter_isr("t", (1, 3))
    world.fence(1)
    assert world.one(LeaderAndIsr).leader == 3
    assert world.one(LeaderAndIsr).passed_over == {1: "BROKER_FENCED", 2: "NOT_IN_SYNC"}


def test_it_names_a_broker_that_shuts_down() -> None:
    world = world_of(1, 2)
    world.create("t", (1, 2))
    world.beat(1, shutdown=True)
    assert world.one(LeaderAndIsr).passed_over == {1: "BROKER_SHUTTING_DOWN"}


def test_it_names_a_broker_that_is_gone() -> None:
    world = world_of(1, 2)
    world.create("t", (1, 2))
    world.publish("broker_unregister", broker=1)
    assert world.one(LeaderAndIsr).passed_over == {1: "BROKER_UNREGISTERED"}


def test_it_names_a_lost_log_of_an_active_broker() -> None:
    world = world_of(1, 2)
    world.create("t", (1, 2))
    where = {"topic": "t", "partition": 0, "broker": 1, "broker_epoch": world.broker(1).broker_epoch}
    world.publish("replica_report", **where, leader_epoch=0, outcome="offline")
    assert world.one(LeaderAndIsr).passed_over == {1: "LOG_LOST"}


def test_it_names_all_replicas_if_nobody_is_elected() -> None:
    world = world_of(1, 2)
    world.create("t", (1, 2))
    world.alter_isr("t", (1,))
    world.fence(1)
    assert world.one(LeaderAndIsr).passed_over == {1: "BROKER_FENCED", 2: "NOT_IN_SYNC"}


def test_an_unclean_election_names_its_leader_too_because_a_clean_one_passed_it_over() -> None:
    world = world_of(1, 2)
    world.create("t", (1, 2), unclean_leader_election_enable="true")
    world.alter_isr("t", (1,))
    world.fence(1)
    assert world.one(LeaderAndIsr).leader == 2
    assert world.one(LeaderAndIsr).passed_over == {1: "BROKER_FENCED", 2: "NOT_IN_SYNC"}
