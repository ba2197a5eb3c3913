"""A controller takes over in the middle of things, and goes on with them."""

import pytest

from state.decisions import LeaderAndIsr, StopReplica, TopicDecision
from tests.controller_logic.moving import assigned, move, removed, report, told_to_delete
from tests.support.world import World


@pytest.fixture
def world() -> World:
    world = World(1, 2, 3, 4)
    world.create("t", (1, 2, 3))
    return world


def take_over(world: World, **settings: object) -> None:
    epoch = world.state.cluster.controller_epoch + 1
    world.publish("controller_started", controller_id="next", controller_epoch=epoch, settings=settings)


def test_where_all_is_well_nothing_is_said(world: World) -> None:
    take_over(world)
    assert world.decisions == []


def test_deletions_are_asked_for_again(world: World) -> None:
    world.publish("delete_topic", topic="t")
    report(world, 1, leader_epoch=-2)
    report(world, 2, "error", leader_epoch=-2)
    take_over(world)
    assert [(stop.delete, stop.leader_epoch, stop.to) for stop in world.all(StopReplica)] == [(True, -2, (2, 3))]
    assert world.one(TopicDecision).state == "deleting"
    report(world, 2, leader_epoch=-2)
    report(world, 3, leader_epoch=-2)
    assert world.one(TopicDecision).state == "deleted"


def test_a_deletion_waits_on_for_brokers_that_are_away(world: World) -> None:
    world.fence(3)
    world.publish("delete_topic", topic="t")
    take_over(world)
    assert world.all(TopicDecision) == []
    assert [stop.to for stop in world.all(StopReplica)] == [(1, 2)]


def test_removed_replicas_are_asked_for_again(world: World) -> None:
    move(world, 4)
    world.alter_isr("t", (1, 2, 3, 4))
    world.fence(3)
    report(world, 2, "error")
    take_over(world)
    assert (told_to_delete(world), removed(world)) == ((1, 2), "1 Started,2 Started,3 Ineligible")
    assert world.all(LeaderAndIsr) == []


def test_a_reassignment_goes_on(world: World) -> None:
    move(world, 4, 1)
    take_over(world)
    assert (world.decisions, assigned(world)) == ([], "4,1,2,3 +4 -2,3")
    world.alter_isr("t", (1, 2, 3, 4))
    assert assigned(world) == "4,1"


def test_one_that_the_new_settings_let_complete_does() -> None:
    world = World(1, 2, 3)
    take_over(world, **{"min.insync.replicas": 2})
    world.create("t", (1, 2, 3))
    world.fence(2)
    move(world, 1, 2)
    assert assigned(world) == "1,2,3 -3"
    take_over(world)
    assert (assigned(world), told_to_delete(world)) == ("1,2", (3,))


def test_a_deletion_that_waits_is_not_forgotten(world: World) -> None:
    move(world, 4, 1)
    world.publish("delete_topic", topic="t")
    take_over(world)
    move(world, replicas=None)
    world.tick()
    assert world.one(TopicDecision).state == "deleting"


def test_one_change_a_partition_though_it_is_elected_and_completes_at_once(world: World) -> None:
    world.alter_isr("t", (1,))
    move(world, 4)
    world.fence(1)
    take_over(world, **{"unclean.leader.election.enable": True})
    assert (assigned(world), world.line("t")) == ("4", "Online leader=4 epoch=3/4 isr=4 recovering")
    assert (told_to_delete(world), removed(world)) == ((2, 3), "1 Ineligible,2 Started,3 Started")


def test_what_is_over_for_one_partition_or_topic_goes_on_for_those_behind_it(world: World) -> None:
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
