"""Partitions move while brokers die, shut down and lose logs, and while topics are deleted."""

import pytest

from state.decisions import Answer, LeaderAndIsr, StopReplica, TopicDecision
from tests.controller_logic.moving import assigned, cancel, move, removed, report, told_to_delete
from tests.support.world import World


@pytest.fixture
def world() -> World:
    """Topic t on 1, 2, 3, with 4, 5, 6 beside."""
    world = World(1, 2, 3, 4, 5, 6)
    world.create("t", (1, 2, 3))
    return world


def test_a_target_that_dies_is_waited_for(world: World) -> None:
    move(world, 4, 1)
    world.fence(4)
    assert world.replica_states("t") == "Offline,Online,Online,Online"
    assert assigned(world) == "4,1,2,3 +4 -2,3"
    world.beat(4)
    assert world.said == "REPLICA_ONLINE to 4"
    world.alter_isr("t", (1, 2, 3, 4))
    assert assigned(world) == "4,1"


def test_the_leader_may_die_meanwhile(world: World) -> None:
    move(world, 4, 1)
    world.fence(1)
    assert world.line("t") == "Online leader=2 epoch=2/2 isr=2,3"
    world.alter_isr("t", (2, 3, 4))
    assert assigned(world) == "4,1", "1 is down and does not move"
    assert world.line("t") == "Online leader=4 epoch=3/3 isr=4"
    world.beat(1)
    world.alter_isr("t", (4, 1))
    assert world.line("t") == "Online leader=4 epoch=3/4 isr=4,1"


def test_a_replica_that_stays_and_only_lags_is_waited_for(world: World) -> None:
    world.alter_isr("t", (1, 3))
    move(world, 4, 1, 2)
    world.alter_isr("t", (1, 3, 4))
    assert assigned(world) == "4,1,2,3 +4 -3"
    world.alter_isr("t", (1, 3, 4, 2))
    assert assigned(world) == "4,1,2"


def test_a_replica_that_stays_and_is_down_is_not(world: World) -> None:
    world.fence(2)
    move(world, 4, 1, 2)
    world.alter_isr("t", (1, 3, 4))
    assert (assigned(world), world.line("t")) == ("4,1,2", "Online leader=1 epoch=3/3 isr=1,4")


def test_nor_one_that_dies_or_loses_its_log_while_it_is_waited_for(world: World) -> None:
    world.alter_isr("t", (1, 3))
    move(world, 4, 1, 2)
    world.alter_isr("t", (1, 3, 4))
    report(world, 2, "offline")
    assert (assigned(world), world.said) == ("4,1,2", "REASSIGNMENT to 4,1")
    assert told_to_delete(world) == (3,)


def test_but_never_below_min_insync_replicas() -> None:
    world = World(1, 2, 3, 4)
    world.create("t", (1, 2, 3), min_insync_replicas="2")
    world.fence(2)
    move(world, 1, 2)
    assert assigned(world) == "1,2,3 -3"
    world.beat(2)
    world.alter_isr("t", (1, 3, 2))
    assert assigned(world) == "1,2"


def test_a_removed_replica_that_is_sick_is_not_waited_for(world: World) -> None:
    world.fence(3)
    move(world, 4, 1, 2)
    world.alter_isr("t", (1, 2, 4))
    assert (assigned(world), removed(world)) == ("4,1,2", "3 Ineligible")


def test_a_shutdown_in_the_middle_moves_the_leader_and_no_more(world: World) -> None:
    move(world, 4, 1)
    for broker, after in ((1, "leader=2 epoch=2/2 isr=2,3"), (2, "leader=3 epoch=3/3 isr=3")):
        world.publish("controlled_shutdown", broker=broker, broker_epoch=world.broker(broker).broker_epoch)
        assert world.line("t") == f"Online {after}"
        assert assigned(world) == "4,1,2,3 +4 -2,3"


def test_a_shutdown_that_is_followed_by_death_lets_it_complete(world: World) -> None:
    world.alter_isr("t", (1, 3))
    move(world, 4, 1, 2)
    world.alter_isr("t", (1, 3, 4))
    world.publish("controlled_shutdown", broker=2, broker_epoch=world.broker(2).broker_epoch)
    assert assigned(world) == "4,1,2,3 +4 -3"
    world.fence(2)
    assert assigned(world) == "4,1,2"


def test_an_unclean_election_may_fall_on_a_target(world: World) -> None:
    world.publish("alter_config", entity="topic", name="t", config={"unclean.leader.election.enable": True})
    world.alter_isr("t", (1,))
    move(world, 4)
    world.fence(1)
    assert (assigned(world), removed(world)) == ("4", "1 Ineligible,2 Started,3 Started")
    assert world.line("t") == "Online leader=4 epoch=2/3 isr=4 recovering"
    assert world.said == "REASSIGNMENT unclean to 4"


def test_a_partition_that_waits_for_its_last_member_may_be_left_to_it(world: World) -> None:
    world.alter_isr("t", (1,))
    world.fence(1)
    move(world, 1)
    assert (assigned(world), world.line("t")) == ("1", "Offline leader=none epoch=2/3 isr=1")
    assert told_to_delete(world) == (2, 3)


def test_a_partition_that_nobody_ever_led_goes_at_once() -> None:
    world = World(1, 2)
    world.fence(1)
    world.create("t", (1,))
    move(world, 2)
    assert (assigned(world), world.line("t"), removed(world)) == ("2", "Online leader=2 epoch=0/0 isr=2", "")
    assert world.one(LeaderAndIsr).is_new
    world.fence(2)
    world.create("u", (1,))
    move(world, 2, 1, topic="u")
    assert world.error == "INVALID_REPLICA_ASSIGNMENT"


def test_a_partition_that_nobody_ever_led_counts_with_the_replicas_that_it_is_left() -> None:
    world = World(1, 2)
    world.fence(1, 2)
    world.create("t", (1, 2))
    move(world, 1)
    assert (assigned(world), world.state.cluster.totals.replicas) == ("1", 1)


def test_partitions_are_not_added_meanwhile(world: World) -> None:
    move(world, 4, 1)
    world.publish("create_partitions", topic="t", total=2)
    assert (world.kinds, world.error) == ("answer", "REASSIGNMENT_IN_PROGRESS")
    assert world.one(Answer).topic == "t"


def test_a_removed_replica_still_tells_its_offsets_and_nobody_minds(world: World) -> None:
    move(world, 1, 2)
    world.offsets("t", b3=7)
    assert world.decisions == []


def test_the_watermark_goes_on_with_the_target_alone(world: World) -> None:
    world.offsets("t", b1=5, b2=5, b3=3)
    world.tick()
    move(world, 4, 1, 2)
    world.offsets("t", b1=9, b2=9, b3=3, b4=8)
    world.alter_isr("t", (1, 2, 3, 4))
    world.offsets("t", b1=9, b2=9, b4=8)
    world.tick()
    assert world.partition("t").high_watermark == 8


def test_a_deletion_waits_for_it(world: World) -> None:
    move(world, 4, 1)
    world.publish("delete_topic", topic="t")
    assert (world.one(TopicDecision).state, world.error) == ("ineligible", "NONE")
    assert world.line("t") == "Online leader=1 epoch=1/1 isr=1,2,3"
    world.publish("delete_topic", topic="t")
    assert (world.kinds, world.error) == ("answer", "NONE")
    assert world.tick() == []
    world.alter_isr("t", (1, 2, 3, 4))
    assert assigned(world) == "4,1"
    world.tick()
    assert world.one(TopicDecision).state == "deleting"
    assert [(stop.leader_epoch, stop.to) for stop in world.all(StopReplica)] == [(-2, (4, 1, 2, 3))]
    for broker in (1, 2, 3, 4):
        report(world, broker, leader_epoch=-2)
    assert world.one(TopicDecision).state == "deleted"
    assert world.state.cluster.deletions_due == ()


def test_a_deletion_that_waits_looks_at_its_topic_only_where_a_move_ended(world: World) -> None:
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


def test_a_topic_whose_deletion_waits_takes_a_cancel_and_nothing_else(world: World) -> None:
    move(world, 4, 1)
    world.publish("delete_topic", topic="t")
    move(world, 5, 1)
    assert world.error == "UNKNOWN_TOPIC_OR_PARTITION"
    world.publish("create_partitions", topic="t", total=2)
    assert world.error == "UNKNOWN_TOPIC_OR_PARTITION"
    world.publish("elect_leaders", election_type="preferred", partitions=[{"topic": "t", "partition": 0}])
    assert world.error == "INVALID_TOPIC_EXCEPTION"
    world.create("t", (1,))
    assert world.error == "TOPIC_ALREADY_EXISTS"
    cancel(world)
    assert world.error == "NONE"
    world.tick()
    assert world.one(TopicDecision).state == "deleting"


def test_asked_for_again_once_it_need_not_wait_it_begins_at_once(world: World) -> None:
    move(world, 4, 1)
    world.publish("delete_topic", topic="t")
    world.alter_isr("t", (1, 2, 3, 4))
    world.publish("delete_topic", topic="t")
    assert (world.one(TopicDecision).state, world.error) == ("deleting", "NONE")
    assert world.tick() == []
    assert world.state.cluster.totals.topics == 0


def test_a_tick_that_fences_somebody_begins_no_deletion(world: World) -> None:
    move(world, 4, 1)
    world.publish("delete_topic", topic="t")
    cancel(world)
    world.fence(2)
    assert world.all(TopicDecision) == []
    world.tick()
    assert world.one(TopicDecision).state == "ineligible"


def test_an_added_replica_that_is_in_sync_already_leaves_the_isr_when_it_shuts_down() -> None:
    world = World(1, 2, 3)
    world.create("t", (1,))
    world.publish("alter_reassignment", topic="t", partition=0, replicas=[2, 3])
    world.alter_isr("t", (1, 3))
    world.publish("controlled_shutdown", broker=3, broker_epoch=world.broker(3).broker_epoch)
    assert world.partition("t").isr == (1,)
    assert world.partition("t").is_reassigning
