"""Replicas that a reassignment removed are deleted, each on its own."""

import pytest

from state.rules import STRAYS_RULES
from tests.controller_logic.moving import move, removed, report, told_to_delete
from tests.support.world import World


@pytest.fixture
def world() -> World:
    """Topic t on 3 alone, with 1 and 2 told to delete what they held."""
    world = World(1, 2, 3)
    world.create("t", (1, 2, 3))
    move(world, 3)
    assert removed(world) == "1 Started,2 Started"
    return world


def test_only_who_is_away_is_held_up(world: World) -> None:
    world.fence(1)
    assert (removed(world), world.kinds) == ("1 Ineligible,2 Started", "broker")
    world.beat(1)
    assert (removed(world), told_to_delete(world)) == ("1 Started,2 Started", (1,))


def test_what_a_broker_did_before_it_was_told_to_delete_is_not_the_deletion(world: World) -> None:
    epoch = world.partition("t").removed[0].leader_epoch
    report(world, 1, leader_epoch=epoch)
    assert removed(world) == "1 Started,2 Started"
    report(world, 1, leader_epoch=epoch + 1)
    assert removed(world) == "2 Started"


def test_a_deletion_of_the_topic_takes_it_over(world: World) -> None:
    world.publish("delete_topic", topic="t")
    assert (removed(world), world.partition("t").replicas) == ("", (3, 1, 2))


def test_an_unregistered_leader_that_a_move_drops_is_not_waited_for() -> None:
    world = World(1, 2, unclean_leader_election_enable="true")
    world.create("t", (1,))
    world.publish("alter_reassignment", topic="t", partition=0, replicas=[2])
    world.publish("broker_unregister", broker=1)
    assert world.line("t") == "Online leader=2 epoch=2/2 isr=2 recovering"
    assert (world.partition("t").replicas, world.partition("t").removed) == ((2,), ())


def test_a_replica_that_was_added_on_an_unregistered_broker_is_cancelled() -> None:
    world = World(1, 2)
    world.create("t", (1,))
    world.fence(2)
    world.publish("alter_reassignment", topic="t", partition=0, replicas=[1, 2])
    world.publish("broker_unregister", broker=2)
    world.publish("alter_reassignment", topic="t", partition=0, replicas=None)
    assert (world.partition("t").replicas, world.partition("t").removed) == ((1,), ())


def claim(world: World, epoch: int = 1) -> None:
    world.publish("controller_started", controller_id="j", controller_epoch=epoch, rules_version=STRAYS_RULES)


def test_a_broker_of_kafka_4_that_is_away_is_forgotten_and_one_that_is_there_is_asked(world: World) -> None:
    claim(world)
    world.register(1, behind_gateway=True)
    world.fence(2)
    assert removed(world) == "1 Started,2 Ineligible"
    world.fence(1)
    assert removed(world) == "2 Ineligible"


def test_who_was_awaited_before_it_came_behind_a_gateway_is_not_after_the_next_failure(world: World) -> None:
    claim(world)
    world.fence(1)
    world.register(1, behind_gateway=True)
    assert removed(world) == "1 Ineligible,2 Started"
    world.fence(2)
    assert removed(world) == "2 Ineligible"


def test_who_was_awaited_by_former_rules_is_not_after_a_take_over(world: World) -> None:
    world.register(1, behind_gateway=True)
    world.fence(1)
    assert removed(world) == "1 Ineligible,2 Started"
    claim(world)
    assert removed(world) == "2 Started"
