"""Partitions move (KIP-455): what the stories of ``tests/scenarios/reassign`` cannot show."""

import pytest

from state.decisions import StopReplica, TopicDecision
from tests.controller_logic.moving import assigned, cancel, move, removed, told_to_delete
from tests.support.world import World


@pytest.fixture
def world() -> World:
    """Topic t on brokers 1, 2 and 3. Broker 4 has no replica."""
    world = World(1, 2, 3, 4)
    world.create("t", (1, 2, 3))
    return world


def test_a_partition_without_a_leader_counts_its_remaining_replicas() -> None:
    world = World(1, 2)
    world.fence(1, 2)
    world.create("t", (1, 2))
    move(world, 1)
    assert (assigned(world), world.state.cluster.totals.replicas) == ("1", 1)


def test_a_waiting_deletion_is_checked_only_after_a_move_has_ended(world: World) -> None:
    world.create("two", (1,), (1,))
    for partition in (0, 1):
        move(world, 2, topic="two", partition=partition)
    world.publish("delete_topic", topic="two")
    assert world.state.cluster.deletions_due == ()
    world.alter_isr("two", (1, 2), partition=1)
    assert world.state.cluster.deletions_due == ("two",)
    assert (world.tick(), world.state.cluster.deletions_due) == ([], ())
    world.alter_isr("two", (1, 2), partition=0)
    world.tick()
    assert (world.one(TopicDecision).state, world.state.cluster.deletions_due) == ("deleting", ())


def test_a_tick_that_fences_a_broker_starts_no_deletion(world: World) -> None:
    move(world, 4, 1)
    world.publish("delete_topic", topic="t")
    cancel(world)
    world.fence(2)
    assert world.all(TopicDecision) == []
    world.tick()
    assert world.one(TopicDecision).state == "ineligible"


def take_over(world: World, **settings: object) -> None:
    epoch = world.state.cluster.controller_epoch + 1
    world.publish("controller_started", controller_id="next", controller_epoch=epoch, settings=settings)


def test_an_election_that_ends_a_move_is_one_change(world: World) -> None:
    world.alter_isr("t", (1,))
    move(world, 4)
    world.fence(1)
    take_over(world, **{"unclean.leader.election.enable": True})
    assert (assigned(world), world.line("t")) == ("4", "Online leader=4 epoch=3/4 isr=4 recovering")
    assert (told_to_delete(world), removed(world)) == ((2, 3), "1 Ineligible,2 Started,3 Started")


def test_a_new_claim_handles_every_topic_and_partition(world: World) -> None:
    world.create("a", (1, 2))
    world.publish("delete_topic", topic="a")
    world.create("u", (1, 2, 3), (2, 3, 1))
    world.alter_isr("u", (1,))
    move(world, 4, topic="u", partition=0)
    move(world, 3, topic="u", partition=1)
    world.fence(1)
    take_over(world, **{"unclean.leader.election.enable": True})
    stops = [(stop.topic, stop.partition, stop.to) for stop in world.all(StopReplica)]
    assert stops == [("a", 0, (2,)), ("u", 0, (2, 3)), ("u", 1, (2,))]
