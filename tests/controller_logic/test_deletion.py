"""Topics go, replica by replica."""

from collections.abc import Iterator

import pytest

from controller_logic import deletion
from controller_logic.batch import Batch
from controller_logic.replay import decide
from state.decisions import Answer, LeaderAndIsr, Rejected, StopReplica, TopicDecision
from state.events import ReplicaReport
from state.partition import Partition
from state.policy import Policy
from state.rules import STRAYS_RULES
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


def stopped(world: World) -> list[tuple[int, tuple[int, ...]]]:
    assert all(stop.delete and stop.leader_epoch == -2 for stop in world.all(StopReplica))
    return [(stop.partition, stop.to) for stop in world.all(StopReplica)]


def test_every_replica_is_told_and_nobody_leads(world: World) -> None:
    delete(world)
    assert stopped(world) == [(0, (1, 2)), (1, (2, 3))]
    assert (world.one(TopicDecision).state, world.error) == ("deleting", "NONE")
    assert world.one(Answer).topic_id == world.one(TopicDecision).topic_id
    assert world.line("t") == "NonExistent leader=none epoch=1/1 isr=1,2"
    assert [(d.leader, d.to) for d in world.all(LeaderAndIsr)] == [(-1, ()), (-1, ())]
    assert world.replica_states("t") == "ReplicaDeletionStarted,ReplicaDeletionStarted"


def test_one_that_is_named_by_its_id_is_never_another(world: World) -> None:
    delete(world)
    topic_id = world.one(TopicDecision).topic_id
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


def test_it_is_gone_when_the_last_replica_is(world: World) -> None:
    delete(world)
    for broker, partition in ((1, 0), (2, 0), (2, 1)):
        report(world, broker, partition)
        assert world.decisions == []
    report(world, 3, 1)
    assert world.one(TopicDecision).state == "deleted"
    assert world.state.topics.names() == ["u"]


def test_the_name_is_free_again_only_then(world: World) -> None:
    delete(world)
    world.create("t", (1,))
    assert world.error == "TOPIC_ALREADY_EXISTS"
    for broker, partition in ((1, 0), (2, 0), (2, 1), (3, 1)):
        report(world, broker, partition)
    world.create("t", (1,))
    assert (world.error, world.line("t")) == ("NONE", "Online leader=1 epoch=0/0 isr=1")


def test_offsets_of_the_former_topic_say_nothing_of_the_next(world: World) -> None:
    for broker in (2, 3):
        world.offsets("t", 1, **{f"b{broker}": 5})
    delete(world)
    for broker, partition in ((1, 0), (2, 0), (2, 1), (3, 1)):
        report(world, broker, partition)
    world.create("t", (1,))
    assert world.tick() == []


def test_a_dead_broker_holds_it_up_until_it_is_back(world: World) -> None:
    world.fence(3)
    delete(world)
    assert world.one(TopicDecision).state == "ineligible"
    assert stopped(world) == [(0, (1, 2)), (1, (2,))]
    for broker, partition in ((1, 0), (2, 0), (2, 1)):
        report(world, broker, partition)
    world.beat(3)
    assert (world.one(TopicDecision).state, stopped(world)) == ("deleting", [(1, (3,))])
    report(world, 3, 1)
    assert world.one(TopicDecision).state == "deleted"


def test_a_broker_that_dies_meanwhile_holds_it_up(world: World) -> None:
    delete(world)
    report(world, 2, 0)
    world.fence(2)
    assert world.one(TopicDecision).state == "ineligible"
    world.beat(2)
    assert (world.one(TopicDecision).state, stopped(world)) == ("deleting", [(1, (2,))])


def test_each_broker_that_is_back_removes_its_own(world: World) -> None:
    world.fence(2, 3)
    delete(world)
    world.beat(2)
    assert stopped(world) == [(0, (2,)), (1, (2,))]
    assert world.all(TopicDecision) == []
    world.beat(3)
    assert (world.one(TopicDecision).state, stopped(world)) == ("deleting", [(1, (3,))])


def test_what_failed_is_not_done_until_it_was_asked_for_again(world: World) -> None:
    delete(world)
    report(world, 1, 0, "error")
    report(world, 1, 0)
    assert world.replica_states("t") == "ReplicaDeletionIneligible,ReplicaDeletionStarted"


def test_all_of_it_may_come_in_one_batch(world: World) -> None:
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


@pytest.mark.parametrize("outcome", ["error", "offline"])
def test_a_failure_holds_it_up(world: World, outcome: str) -> None:
    delete(world)
    report(world, 1, 0, outcome)
    assert world.one(TopicDecision).state == "ineligible"
    assert "ReplicaDeletionIneligible" in world.replica_states("t")


def test_other_reports_say_nothing_of_it(world: World) -> None:
    delete(world)
    report(world, 1, 0, "stopped")
    report(world, 1, 7)
    assert world.decisions == []
    assert world.replica_states("t") == "ReplicaDeletionStarted,ReplicaDeletionStarted"


def test_a_report_of_a_topic_that_lives_deletes_nothing(world: World) -> None:
    report(world, 1, 0)
    assert world.line("t") == "Online leader=1 epoch=0/0 isr=1,2"


class WalkedPartitions(list[Partition]):
    """Count how often all partitions are gone through."""

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
        event = ReplicaReport(
            time_ms=0, topic="wide", partition=number, broker=1, broker_epoch=0, leader_epoch=-2, outcome="deleted"
        )
        deletion.replica_reported(batch, topic, event)
    assert batch.state.topic("wide") is None
    # They are counted with the first report, and the topic is taken away with the last.
    assert walked.walks <= 2


def test_it_counts_no_more_and_takes_part_in_nothing(world: World) -> None:
    delete(world)
    totals = world.state.cluster.totals
    assert (totals.topics, totals.partitions, totals.offline) == (1, 1, 0)
    world.publish("elect_leaders", election_type="unclean", partitions=[{"topic": "t", "partition": 0}])
    assert world.error == "INVALID_TOPIC_EXCEPTION"
    world.alter_isr("t", (1,), broker=1)
    assert world.error == "UNKNOWN_TOPIC_OR_PARTITION"
    world.publish("log_end_offset", topic="t", partition=0, broker=1, leader_epoch=1, log_end_offset=1)
    assert world.one(Rejected).field == "topic"
    world.publish("alter_config", entity="topic", name="t", config={"a": 1})
    assert world.error == "UNKNOWN_TOPIC_OR_PARTITION"
    world.publish("create_partitions", topic="t", total=9)
    assert world.error == "UNKNOWN_TOPIC_OR_PARTITION"


def test_asking_again_is_done_already(world: World) -> None:
    delete(world)
    delete(world)
    assert (world.kinds, world.error) == ("answer", "NONE")


def test_it_may_be_switched_off() -> None:
    world = World(1, delete_topic_enable="false")
    world.create("t", (1,))
    delete(world)
    assert (world.kinds, world.error) == ("answer", "TOPIC_DELETION_DISABLED")


def test_an_unknown_topic_is_not_deleted(world: World) -> None:
    delete(world, "nowhere")
    assert (world.kinds, world.error) == ("answer", "UNKNOWN_TOPIC_OR_PARTITION")


def test_who_shuts_down_is_asked_nothing_more_and_what_it_was_asked_is_awaited(world: World) -> None:
    delete(world)
    world.beat(2, shutdown=True)
    world.publish("controller_started", controller_id="c", controller_epoch=1, settings={})
    assert stopped(world) == [(0, (1,)), (1, (3,))]
    for broker, partition in ((1, 0), (2, 0), (2, 1), (3, 1)):
        report(world, broker, partition)
    assert world.one(TopicDecision).state == "deleted"


def test_a_lost_log_dir_is_lost_until_its_broker_starts_again(world: World) -> None:
    delete(world)
    report(world, 2, 0, "error")
    report(world, 2, 0, "offline")
    report(world, 2, 1, "offline")
    delete(world)
    assert (stopped(world), world.partition("t").offline_dir_replicas) == ([], (2,))
    world.fence(2)
    world.beat(2)
    assert stopped(world) == [(0, (2,)), (1, (2,))]
    assert world.partition("t").offline_dir_replicas == ()


def test_what_failed_is_asked_again_with_the_deletion(world: World) -> None:
    delete(world)
    report(world, 2, 0, "error")
    delete(world)
    assert stopped(world) == [(0, (2,))]


def claim(world: World, epoch: int) -> None:
    world.publish("controller_started", controller_id="j", controller_epoch=epoch, rules_version=STRAYS_RULES)


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


def test_a_deletion_that_waited_by_former_rules_ends_with_the_take_over(world: World) -> None:
    world.register(3, behind_gateway=True)
    world.fence(3)
    delete(world)
    for broker, partition in [(1, 0), (2, 0), (2, 1)]:
        report(world, broker, partition)
    assert world.all(TopicDecision) == []
    claim(world, 1)
    assert world.one(TopicDecision).state == "deleted"
