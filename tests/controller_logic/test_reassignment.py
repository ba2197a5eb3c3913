"""Partitions move to other brokers (KIP-455)."""

from typing import Any

import pytest

from isrflow.state.decisions import Answer, LeaderAndIsr, Rejected, StopReplica, TopicDecision
from tests.controller_logic.world import World


@pytest.fixture
def world() -> World:
    """Topic t on 1, 2, 3, with 4, 5, 6 beside."""
    world = World(1, 2, 3, 4, 5, 6)
    world.create("t", (1, 2, 3))
    return world


def move(world: World, *replicas: int, **fields: Any) -> None:
    world.publish("alter_reassignment", **({"topic": "t", "partition": 0, "replicas": replicas} | fields))


def cancel(world: World) -> None:
    move(world, replicas=None)


def report(world: World, broker: int, outcome: str = "deleted", **fields: Any) -> None:
    where = {"topic": "t", "partition": 0, "broker": broker, "broker_epoch": world.broker(broker).broker_epoch}
    event = where | {"leader_epoch": world.partition("t").leader_epoch, "outcome": outcome}
    world.publish("replica_report", **(event | fields))


def assigned(world: World) -> str:
    """Show the replicas with what is added and removed: ``4,1,2 +4 -1``."""
    partition = world.partition("t")
    moving = (("+", partition.adding_replicas), ("-", partition.removing_replicas))
    return " ".join([_ids(partition.replicas), *(sign + _ids(ids) for sign, ids in moving if ids)])


def removed(world: World) -> str:
    entries = world.partition("t").removed
    return ",".join(f"{entry.broker} {entry.state.name.removeprefix('ReplicaDeletion')}" for entry in entries)


def told_to_delete(world: World) -> tuple[int, ...]:
    stops = world.all(StopReplica)
    epoch = world.partition("t").leader_epoch
    assert all((stop.delete, stop.leader_epoch, stop.reason) == (True, epoch, "REASSIGNMENT") for stop in stops)
    assert len(stops) <= 1
    return stops[0].to if stops else ()


def _ids(brokers: tuple[int, ...]) -> str:
    return ",".join(str(broker) for broker in brokers)


def test_it_begins_with_the_target_first_and_the_new_ones_told(world: World) -> None:
    move(world, 4, 5, 1)
    assert world.error == "NONE"
    assert assigned(world) == "4,5,1,2,3 +4,5 -2,3"
    assert world.line("t") == "Online leader=1 epoch=1/1 isr=1,2,3"
    assert world.said == "REASSIGNMENT to 4,5,1,2,3"
    assert world.replica_states("t") == "New,New,Online,Online,Online"
    assert world.state.cluster.totals.reassigning == 1


def test_it_completes_when_all_of_the_target_is_in_sync(world: World) -> None:
    move(world, 4, 5, 6)
    world.alter_isr("t", (1, 2, 3, 4, 5))
    assert assigned(world) == "4,5,6,1,2,3 +4,5,6 -1,2,3"
    assert world.line("t") == "Online leader=1 epoch=1/2 isr=1,2,3,4,5"
    world.alter_isr("t", (1, 2, 3, 6, 5, 4))
    assert assigned(world) == "4,5,6"
    assert world.line("t") == "Online leader=4 epoch=2/3 isr=6,5,4"
    assert world.said == "REASSIGNMENT to 4,5,6"
    assert told_to_delete(world) == (1, 2, 3)
    assert world.replica_states("t") == "Online,Online,Online"
    assert removed(world) == "1 Started,2 Started,3 Started"
    assert world.state.cluster.totals.reassigning == 0


def test_the_leader_that_moved_itself_away_is_told_who_leads(world: World) -> None:
    move(world, 4)
    world.alter_isr("t", (1, 2, 3, 4))
    answer = world.one(Answer)
    assert (answer.error, answer.leader, answer.isr) == ("NEW_LEADER_ELECTED", 4, (4,))
    assert (answer.leader_epoch, answer.partition_epoch) == (2, 2)


def test_a_leader_that_stays_keeps_leading_in_a_new_epoch(world: World) -> None:
    move(world, 4, 1)
    world.alter_isr("t", (1, 2, 3, 4))
    answer = world.one(Answer)
    assert (answer.error, answer.leader, answer.leader_epoch, answer.isr) == ("NONE", 1, 2, (1, 4))
    assert assigned(world) == "4,1"


def test_each_removed_replica_is_forgotten_when_it_is_deleted(world: World) -> None:
    move(world, 4)
    world.alter_isr("t", (1, 2, 3, 4))
    report(world, 2, "stopped")
    assert removed(world) == "1 Started,2 Started,3 Started"
    report(world, 2)
    assert (removed(world), world.decisions) == ("1 Started,3 Started", [])
    report(world, 2)
    assert world.one(Rejected).field == "broker"
    report(world, 1)
    report(world, 3)
    assert removed(world) == ""


@pytest.mark.parametrize("outcome", ["error", "offline"])
def test_a_deletion_that_fails_is_tried_again_when_the_broker_starts(world: World, outcome: str) -> None:
    move(world, 2, 3)
    report(world, 1, outcome)
    assert removed(world) == "1 Ineligible"
    report(world, 1)
    assert removed(world) == "1 Ineligible"
    world.fence(1)
    world.beat(1)
    assert (removed(world), told_to_delete(world)) == ("1 Started", (1,))


def test_a_removed_replica_on_a_dead_broker_is_deleted_when_it_returns(world: World) -> None:
    world.fence(3)
    move(world, 1, 2)
    assert (assigned(world), removed(world), told_to_delete(world)) == ("1,2", "3 Ineligible", ())
    world.beat(3)
    assert (removed(world), told_to_delete(world)) == ("3 Started", (3,))
    assert world.all(LeaderAndIsr) == []


def test_a_removed_replica_whose_broker_dies_is_told_again(world: World) -> None:
    move(world, 1, 2)
    world.fence(3)
    assert removed(world) == "3 Ineligible"
    world.register(3, "second")
    world.beat(3)
    assert told_to_delete(world) == (3,)


def test_fewer_replicas_are_there_at_once(world: World) -> None:
    move(world, 2, 1)
    assert assigned(world) == "2,1"
    assert world.line("t") == "Online leader=1 epoch=1/1 isr=1,2"
    assert told_to_delete(world) == (3,)


def test_another_order_is_there_at_once(world: World) -> None:
    move(world, 3, 2, 1)
    assert (assigned(world), world.line("t")) == ("3,2,1", "Online leader=1 epoch=1/1 isr=1,2,3")
    world.publish("elect_leaders", election_type="preferred", partitions=None)
    assert world.line("t") == "Online leader=3 epoch=2/2 isr=1,2,3"


def test_where_it_is_already_changes_nothing(world: World) -> None:
    move(world, 1, 2, 3)
    assert (world.kinds, world.error) == ("answer", "NONE")
    move(world, 4, 1)
    move(world, 4, 1)
    assert (world.kinds, assigned(world)) == ("answer", "4,1,2,3 +4 -2,3")


def test_cancelled_it_is_back_where_it_was(world: World) -> None:
    move(world, 4, 5, 6)
    world.alter_isr("t", (1, 2, 3, 4))
    cancel(world)
    assert world.error == "NONE"
    assert (assigned(world), world.line("t")) == ("1,2,3", "Online leader=1 epoch=2/3 isr=1,2,3")
    assert told_to_delete(world) == (4, 5, 6)
    assert world.said == "REASSIGNMENT to 1,2,3"
    cancel(world)
    assert (world.kinds, world.error) == ("answer", "NO_REASSIGNMENT_IN_PROGRESS")


def test_cancelled_while_an_added_one_leads_another_is_elected(world: World) -> None:
    move(world, 4, 5)
    world.alter_isr("t", (1, 4, 2))
    world.fence(1)
    assert world.line("t") == "Online leader=4 epoch=2/3 isr=4,2"
    cancel(world)
    assert world.line("t") == "Online leader=2 epoch=3/4 isr=2"


def test_a_cancel_that_would_lose_records_is_refused(world: World) -> None:
    move(world, 4, 5)
    world.alter_isr("t", (1, 4))
    world.fence(1)
    cancel(world)
    assert (world.kinds, world.error) == ("answer", "INVALID_REPLICA_ASSIGNMENT")
    assert assigned(world) == "4,5,1,2,3 +4,5 -1,2,3"
    world.publish("alter_config", entity="topic", name="t", config={"unclean.leader.election.enable": True})
    cancel(world)
    assert world.line("t") == "Online leader=2 epoch=3/4 isr=2 recovering"


def test_another_target_replaces_the_first(world: World) -> None:
    move(world, 4, 5, 1)
    move(world, 5, 6, 1)
    assert assigned(world) == "5,6,1,2,3 +5,6 -2,3"
    assert told_to_delete(world) == (4,)
    assert world.replica_states("t") == "New,New,Online,Online,Online"
    world.alter_isr("t", (1, 2, 3, 5, 6))
    assert assigned(world) == "5,6,1"


def test_a_replica_that_comes_back_is_no_more_removed(world: World) -> None:
    move(world, 1, 2)
    move(world, 3, 1, 2)
    assert (assigned(world), removed(world)) == ("3,1,2 +3", "")
    report(world, 3, leader_epoch=1)
    assert world.replica_states("t") == "New,Online,Online"
    world.alter_isr("t", (1, 2, 3))
    move(world, 1, 2)
    report(world, 3, leader_epoch=1)
    assert removed(world) == "3 Started"


@pytest.mark.parametrize(
    ("replicas", "error"),
    [
        ((), "INVALID_REPLICA_ASSIGNMENT"),
        ((1, 4, 4), "INVALID_REPLICA_ASSIGNMENT"),
        ((1, 99), "INVALID_REPLICA_ASSIGNMENT"),
    ],
)
def test_a_target_that_cannot_be_is_refused(world: World, replicas: tuple[int, ...], error: str) -> None:
    before = world.partition("t")
    move(world, *replicas)
    assert (world.kinds, world.error, world.partition("t")) == ("answer", error, before)


def test_who_is_added_must_be_active_and_who_stays_need_not(world: World) -> None:
    world.fence(3, 6)
    move(world, 1, 6)
    assert world.error == "INVALID_REPLICA_ASSIGNMENT"
    world.publish("controlled_shutdown", broker=5, broker_epoch=world.broker(5).broker_epoch)
    move(world, 1, 5)
    assert world.error == "INVALID_REPLICA_ASSIGNMENT"
    move(world, 1, 3, 4)
    assert (world.error, assigned(world)) == ("NONE", "1,3,4,2 +4 -2")


def test_no_partition_no_reassignment(world: World) -> None:
    for fields in ({"topic": "nowhere"}, {"partition": 7}):
        move(world, 1, **fields)
        assert (world.kinds, world.error) == ("answer", "UNKNOWN_TOPIC_OR_PARTITION")
    world.publish("delete_topic", topic="t")
    for replicas in ((1,), None):
        move(world, replicas=replicas)
        assert (world.kinds, world.error) == ("answer", "UNKNOWN_TOPIC_OR_PARTITION")


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


def test_partitions_are_not_added_meanwhile(world: World) -> None:
    move(world, 4, 1)
    world.publish("create_partitions", topic="t", total=2)
    assert (world.kinds, world.error) == ("answer", "REASSIGNMENT_IN_PROGRESS")


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
    assert world.state.cluster.waiting == ()


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


def test_a_tick_that_fences_somebody_begins_no_deletion(world: World) -> None:
    move(world, 4, 1)
    world.publish("delete_topic", topic="t")
    cancel(world)
    world.fence(2)
    assert world.all(TopicDecision) == []
    world.tick()
    assert world.one(TopicDecision).state == "ineligible"
