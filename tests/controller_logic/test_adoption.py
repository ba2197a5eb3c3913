"""Topics that another controller led before: they go on as they were found."""

from typing import Any

import pytest

from state.decisions import Answer, LeaderAndIsr, TopicDecision
from state.partition import PartitionState
from state.reason import Reason
from tests.support.world import World, claimed

ID = "TP9lxr6dp7ZsOP5Q0S-ctQ"
LED: dict[str, Any] = {
    "replicas": [1, 2, 3],
    "isr": [3, 1],
    "leader": 3,
    "leader_epoch": 7,
    "partition_epoch": 12,
}


def adopt(world: World, *partitions: dict[str, Any], **fields: Any) -> str:
    given = {"topic": "t", "topic_id": ID, "partitions": partitions, "request_id": "q"}
    world.publish("adopt_topic", **given | fields)
    return world.error


def test_a_topic_goes_on_with_its_id_and_its_epochs() -> None:
    world = claimed(1, 2, 3)
    assert adopt(world, LED, config={"min.insync.replicas": "2"}) == "NONE"
    assert world.one(Answer).topic_id == ID
    topic = world.one(TopicDecision)
    assert (topic.topic_id, topic.config, topic.reason) == (
        ID,
        {"min.insync.replicas": "2"},
        Reason.TOPIC_ADOPTED,
    )
    held = world.one(LeaderAndIsr)
    assert (held.leader, held.leader_epoch, held.partition_epoch, held.isr) == (3, 7, 12, (3, 1))
    assert (held.reason, held.to, held.is_new) == (Reason.TOPIC_ADOPTED, (), False)
    assert world.partition("t").state is PartitionState.OnlinePartition


@pytest.mark.parametrize("topic_id", ["found-id", "", "A" * 22, "A" * 21 + "Q", ID[:-1], ID + "==", ID[:-1] + "R"])
def test_a_topic_whose_id_brokers_cannot_read_is_refused(topic_id: str) -> None:
    world = claimed(1, 2, 3)
    assert adopt(world, LED, topic_id=topic_id) == "INVALID_REQUEST"
    assert "topic_id" in (world.one(Answer).message or "")


def test_what_follows_continues_the_epochs() -> None:
    world = claimed(1, 2, 3)
    adopt(world, LED)
    world.fence(3)
    held = world.partition("t")
    assert (held.leader, held.leader_epoch, held.partition_epoch, held.isr) == (1, 8, 13, (1,))


def test_a_leader_that_is_gone_is_replaced_at_once() -> None:
    world = claimed(1, 2)
    adopt(world, LED)
    held = world.one(LeaderAndIsr)
    assert (held.leader, held.leader_epoch, held.partition_epoch, held.isr) == (1, 8, 13, (1,))
    assert held.reason == Reason.LEADER_FENCED
    assert world.state.cluster.totals.offline == 0


def test_a_partition_without_a_leader_waits_for_a_member_of_its_isr() -> None:
    world = claimed(1, 2)
    adopt(world, LED | {"isr": [3], "leader": -1})
    assert [held.leader for held in world.all(LeaderAndIsr)] == [-1]
    assert (world.partition("t").isr, world.state.cluster.totals.offline) == ((3,), 1)
    world.join(3)
    assert (world.partition("t").leader, world.partition("t").leader_epoch) == (3, 8)


def test_a_leader_that_the_former_controller_did_not_elect_yet_is_elected() -> None:
    world = claimed(1, 2, 3)
    adopt(world, LED | {"leader": -1})
    assert (world.partition("t").leader, world.partition("t").leader_epoch) == (1, 8)


def test_a_partition_that_never_had_a_leader_gets_its_first() -> None:
    world = claimed(1, 2, 3)
    adopt(world, LED, {"replicas": [2, 3]})
    [led] = [held for held in world.all(LeaderAndIsr) if held.partition == 1]
    assert (led.leader, led.leader_epoch, led.isr, led.is_new) == (2, 0, (2, 3), True)


def test_a_reassignment_goes_on() -> None:
    world = claimed(1, 2, 3, 4)
    moving = {"replicas": [4, 1, 2, 3], "isr": [1, 2, 3], "leader": 1, "adding_replicas": [4], "removing_replicas": [3]}
    adopt(world, LED | moving)
    assert world.partition("t").adding_replicas == (4,)
    world.alter_isr("t", (1, 2, 3, 4))
    held = world.partition("t")
    assert (held.replicas, held.adding_replicas, held.removing_replicas) == ((4, 1, 2), (), ())


def test_a_reassignment_that_was_over_ends_at_once() -> None:
    world = claimed(1, 2, 3, 4)
    moved = {"replicas": [4, 1, 2, 3], "isr": [1, 2, 4], "leader": 1, "adding_replicas": [4], "removing_replicas": [3]}
    adopt(world, LED | moved)
    assert world.partition("t").replicas == (4, 1, 2)


def test_a_leader_that_recovers_goes_on_recovering() -> None:
    world = claimed(1, 2, 3)
    assert adopt(world, LED | {"isr": [3], "leader_recovery_state": "RECOVERING"}) == "NONE"
    assert world.one(LeaderAndIsr).leader_recovery_state == "RECOVERING"


def test_a_name_that_is_taken_is_refused() -> None:
    world = claimed(1, 2, 3)
    world.create("t", (1, 2))
    assert adopt(world, LED) == "TOPIC_ALREADY_EXISTS"
    assert world.all(LeaderAndIsr) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"replicas": []},
        {"replicas": [1, 1, 3]},
        {"isr": [3, 4]},
        {"isr": [3, 3]},
        {"isr": []},
        {"leader": 2},
        {"leader_epoch": -1},
        {"partition_epoch": -1},
        {"adding_replicas": [4]},
        {"adding_replicas": [2], "removing_replicas": [2]},
        {"adding_replicas": [3], "removing_replicas": [3]},
        {"removing_replicas": [1]},
        {"leader_recovery_state": "RECOVERING"},
    ],
)
def test_what_no_controller_leaves_is_refused(wrong: dict[str, Any]) -> None:
    world = claimed(1, 2, 3)
    assert adopt(world, LED, LED | wrong) == "INVALID_REQUEST"
    assert str(world.one(Answer).message).startswith("partition 1: ")
    assert world.kinds == "answer"
