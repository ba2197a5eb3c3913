"""Replicas that a reassignment removed are deleted, each on its own."""

import pytest

from tests.controller_logic.moving import move, removed
from tests.support.world import World


@pytest.fixture
def world() -> World:
    """Topic t on 3 alone; brokers 1 and 2 were asked to delete their replicas."""
    world = World(1, 2, 3)
    world.create("t", (1, 2, 3))
    move(world, 3)
    assert removed(world) == "1 Started,2 Started"
    return world


def claim(world: World, epoch: int = 1) -> None:
    world.publish("controller_started", controller_id="j", controller_epoch=epoch)


def test_a_broker_of_kafka_4_that_is_away_is_forgotten_and_one_that_is_there_is_asked(world: World) -> None:
    claim(world)
    world.register(1, behind_gateway=True)
    world.fence(2)
    assert removed(world) == "1 Started,2 Ineligible"
    world.fence(1)
    assert removed(world) == "2 Ineligible"


def test_a_broker_that_moved_behind_a_gateway_is_not_awaited_after_the_next_failure(world: World) -> None:
    claim(world)
    world.fence(1)
    world.register(1, behind_gateway=True)
    assert removed(world) == "1 Ineligible,2 Started"
    world.fence(2)
    assert removed(world) == "2 Ineligible"
