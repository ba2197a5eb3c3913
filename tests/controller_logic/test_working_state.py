"""Each event of a batch sees the changes of the events before it."""

from collections import defaultdict
from collections.abc import Iterator

import pytest

from controller_logic import commit as commit_module
from controller_logic.batch import Batch
from controller_logic.replay import decide
from state.partition import Topic, TopicState
from state.policy import Policy
from tests.controller_logic.moving import move, told_to_delete
from tests.support.world import World, claimed


def delete(world: World, topic: str) -> None:
    world.publish("delete_topic", topic=topic)
    epoch = world.broker(1).broker_epoch
    where = {"topic": topic, "partition": 0, "broker": 1, "broker_epoch": epoch, "leader_epoch": -2}
    world.publish("replica_report", **where, outcome="deleted")


def assert_cuts_do_not_show(world: World) -> None:
    entries = list(enumerate(world.log, start=1))
    at_once, one_by_one = decide(entries, Policy()), decide(entries, Policy(), batch_sizes=(1,))
    assert at_once.decisions == one_by_one.decisions
    assert at_once.view() == one_by_one.view()


def test_other_topics_continue_after_one_is_deleted() -> None:
    world = World(1, 2)
    world.create("gone", (1,))
    world.create("stays", (1, 2))
    delete(world, "gone")
    world.fence(1)
    assert world.line("stays") == "Online leader=2 epoch=1/1 isr=2"
    assert_cuts_do_not_show(world)


def test_a_name_is_taken_and_free_again_within_a_batch() -> None:
    world = World(1)
    for name, error in (("a.b", "NONE"), ("a_b", "INVALID_TOPIC_EXCEPTION")):
        world.create(name, (1,))
        assert world.error == error
    delete(world, "a.b")
    world.create("a_b", (1,))
    assert world.error == "NONE"
    world.create("a.b", (1,))
    assert world.error == "INVALID_TOPIC_EXCEPTION"
    assert_cuts_do_not_show(world)


def test_a_take_over_within_a_batch_repeats_open_requests() -> None:
    world = World(1, 2, 3)
    world.create("t", (1, 2, 3))
    move(world, 3)
    world.publish("controller_started", controller_id="c", controller_epoch=1)
    assert told_to_delete(world) == (1, 2)
    assert_cuts_do_not_show(world)


def test_a_request_whose_change_is_withheld_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(1, 2, 3)
    world.create("t", (1, 2))
    world.fence(1)
    world.beat(1)
    world.alter_isr("t", (2, 1))
    before = world.partition("t")
    world.is_checked = False
    monkeypatch.setattr(commit_module, "broken_rules", lambda *_: ["the sky is blue"])
    move(world, 3)
    assert (world.error, world.partition("t")) == ("UNKNOWN_SERVER_ERROR", before)
    world.publish("elect_leaders", election_type="preferred", partitions=[{"topic": "t", "partition": 0}])
    assert (world.error, world.partition("t")) == ("UNKNOWN_SERVER_ERROR", before)


def test_a_broker_that_left_its_gateway_owes_reports_at_once() -> None:
    world = World(1, 2)
    world.join(3, behind_gateway=True)
    world.create("t", (1, 3))
    world.register(3, behind_gateway=False)
    world.alter_isr("t", (1,))
    assert world.partition("t").requested_epochs == (0, 0)
    assert_cuts_do_not_show(world)


def test_a_claim_within_a_batch_decides_by_its_own_rules_who_is_waited_for() -> None:
    world = World(1, 2)
    world.join(3, behind_gateway=True)
    world.create("t", (1, 3))
    world.fence(3)
    world.claim()
    move(world, 1, 2)
    world.alter_isr("t", (1, 2))
    assert (world.partition("t").replicas, world.partition("t").removed) == ((1, 2), ())
    assert_cuts_do_not_show(world)


def test_partitions_that_repeat_those_of_another_topic_are_stored() -> None:
    world = World(1, 2)
    world.create("a", (1, 2))
    world.create("b", (1, 2))
    made = len(world.log)
    for topic in ("a", "b"):
        world.publish("create_partitions", topic=topic, total=2, assignment=[[1, 2]])
    decided = decide(list(enumerate(world.log, start=1)), Policy(), batch_sizes=(made, 2))
    [state] = decided.states
    assert {name: len(world.state.topics.get(name).partitions) for name in ("a", "b")} == {"a": 2, "b": 2}
    assert state.topics == world.state.topics


def test_partitions_that_lost_their_leader_alike_are_all_elected_later_in_the_batch() -> None:
    world = claimed(1, 2)
    world.create("t", (1, 2), (1, 2))
    world.alter_isrs(1, ("t", 0, (1,)), ("t", 1, (1,)))
    world.fence(1)
    world.publish("elect_leaders", election_type="unclean", partitions=[{"topic": "t", "partition": 0}])
    world.publish("alter_config", entity="cluster", config={"unclean.leader.election.enable": True})
    assert [world.partition("t", number).leader for number in (0, 1)] == [2, 2]
    assert_cuts_do_not_show(world)


def test_only_topics_that_exist_are_gone_through() -> None:
    world = World(1)
    world.create("stays", (1,))
    world.create("gone", (1,))
    batch = Batch(world.state, world.policy, {})
    assert batch.state.topic("nowhere") is None
    assert [topic.topic for topic in batch.state.topics()] == ["gone", "stays"]
    topic = batch.state.topic("gone")
    assert topic is not None
    batch.state.remove_topic(topic)
    batch.state.add_topic(Topic("again", "id", TopicState.created, {}, ()))
    assert [topic.topic for topic in batch.state.topics()] == ["again", "stays"]


class Unwalked(set[int]):
    def __iter__(self) -> Iterator[int]:
        raise AssertionError("everything that is due is gone through")


def test_a_topic_is_removed_without_going_through_what_is_due_in_others() -> None:
    world = World(1)
    world.create("gone", (1,), (1,))
    batch = Batch(world.state, world.policy, {})
    batch.state.watermarks_due = defaultdict(set, {"gone": {1}, "stays": Unwalked({0})})
    topic = batch.state.topic("gone")
    assert topic is not None
    batch.state.remove_topic(topic)
    assert batch.state.watermarks_due.keys() == {"stays"}
