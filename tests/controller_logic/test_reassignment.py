"""Partitions move to other brokers (KIP-455)."""

import pytest

from state.decisions import Answer, LeaderAndIsr, Rejected
from tests.controller_logic.moving import assigned, cancel, move, removed, report, told_to_delete
from tests.support.world import World


@pytest.fixture
def world() -> World:
    """Topic t on 1, 2, 3, with 4, 5, 6 beside."""
    world = World(1, 2, 3, 4, 5, 6)
    world.create("t", (1, 2, 3))
    return world


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
    assert world.one(LeaderAndIsr).unclean


def test_a_cancel_that_would_lose_records_is_refused_while_nobody_leads_too(world: World) -> None:
    move(world, 4, 5)
    world.alter_isr("t", (1, 4))
    world.fence(1)
    world.fence(4)
    before = world.line("t")
    cancel(world)
    assert (world.kinds, world.error, world.line("t")) == ("answer", "INVALID_REPLICA_ASSIGNMENT", before)


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
