"""Topic deletion: what the stories of ``tests/scenarios/deletion`` cannot show."""

from collections.abc import Iterator

import pytest

from controller_logic import deletion
from controller_logic.batch import Batch
from controller_logic.replay import decide
from controller_logic.working_partitions import WorkingPartitions
from state.decisions import Answer, TopicDecision
from state.partition import Partition
from state.policy import Policy
from state.topic_events import ReportRow
from tests.support.world import World


@pytest.fixture
def world() -> World:
    """Topic t with partitions on 1, 2 and on 2, 3; topic u on 1."""
    world = World(1, 2, 3)
    world.create("t", (1, 2), (2, 3))
    world.create("u", (1,))
    return world


def delete(world: World, topic: str = "t") -> None:
    world.publish("delete_topic", topic=topic)


def report(world: World, broker: int, partition: int, outcome: str = "deleted") -> None:
    where = {"topic": "t", "partition": partition, "broker": broker, "leader_epoch": -2, "outcome": outcome}
    world.publish("replica_report", **where, broker_epoch=world.broker(broker).broker_epoch)


def test_a_topic_named_by_id_is_never_its_successor(world: World) -> None:
    delete(world)
    topic_id = world.one(TopicDecision).topic_id
    assert world.one(Answer).topic_id == topic_id
    for broker, partition in [(1, 0), (2, 0), (2, 1), (3, 1)]:
        report(world, broker, partition)
    world.publish("delete_topic", topic="t", topic_id=topic_id)
    assert world.error == "UNKNOWN_TOPIC_ID"
    world.create("t", (1, 2))
    successor = world.one(TopicDecision).topic_id
    world.publish("delete_topic", topic="t", topic_id=topic_id)
    assert (world.error, world.all(TopicDecision)) == ("UNKNOWN_TOPIC_ID", [])
    world.publish("delete_topic", topic="t", topic_id=successor)
    assert (world.error, world.one(TopicDecision).state) == ("NONE", "deleting")


def test_log_ends_of_a_former_topic_do_not_count_for_its_successor(world: World) -> None:
    for broker in (2, 3):
        world.offsets("t", 1, **{f"b{broker}": 5})
    delete(world)
    for broker, partition in ((1, 0), (2, 0), (2, 1), (3, 1)):
        report(world, broker, partition)
    world.create("t", (1,))
    assert world.tick() == []


def test_a_whole_deletion_may_be_in_one_batch(world: World) -> None:
    delete(world)
    for broker, partition in ((1, 0), (2, 0), (2, 1), (3, 1)):
        report(world, broker, partition)
    world.create("t", (1,))
    world.fence(1)
    entries = list(enumerate(world.log, start=1))
    at_once, one_by_one = decide(entries, Policy()), decide(entries, Policy(), batch_sizes=(1,))
    assert at_once.decisions == one_by_one.decisions
    assert at_once.view() == one_by_one.view()
    assert at_once.states[0].topics.names() == ["t", "u"]


class WalkedPartitions(WorkingPartitions):
    """Partitions that count how often all of them are visited."""

    walks = 0

    def __iter__(self) -> Iterator[Partition]:
        self.walks += 1
        return super().__iter__()


def test_a_report_does_not_go_through_all_partitions(world: World) -> None:
    world.create("wide", *[(1,)] * 20)
    delete(world, "wide")
    batch = Batch(world.state, world.policy, {})
    topic = batch.state.topic("wide")
    assert topic is not None
    topic.partitions = walked = WalkedPartitions(topic.partitions)
    for number in range(20):
        deletion.replica_reported(batch, topic, 1, ReportRow(number, -2, "deleted"))
    assert batch.state.topic("wide") is None
    # The first report counts them, and the last one removes the topic.
    assert walked.walks <= 2


def claim(world: World, epoch: int) -> None:
    world.publish("controller_started", controller_id="j", controller_epoch=epoch)


def test_a_deletion_that_waited_for_a_broker_of_kafka_4_ends_when_it_is_asked_for_again(world: World) -> None:
    claim(world, 1)
    world.fence(3)
    delete(world)
    for broker, partition in [(1, 0), (2, 0), (2, 1)]:
        report(world, broker, partition)
    world.register(3, behind_gateway=True)
    assert world.all(TopicDecision) == []
    delete(world)
    assert world.one(TopicDecision).state == "deleted"
