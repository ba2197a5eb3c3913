"""Creating topics and partitions."""

from typing import Any

import pytest

from controller_logic import topics
from state.decisions import Answer, LeaderAndIsr, TopicDecision
from tests.support.world import World


@pytest.fixture
def trio() -> World:
    return World(1, 2, 3, num_partitions="2", default_replication_factor="3")


def test_a_topic_is_created_with_its_leaders_at_once(trio: World) -> None:
    trio.publish(
        "create_topic", topic="t", assignment={"0": [1, 2], "1": [3, 1]}, config={"x": 1, "b": False, "a": True}
    )
    assert trio.kinds == "leader_and_isr,leader_and_isr,topic,answer"
    created = trio.one(TopicDecision)
    assert (created.state, created.config) == ("created", {"a": "true", "b": "false", "x": "1"})
    first, second = trio.all(LeaderAndIsr)
    assert (first.is_new, first.leader, first.isr, first.to, first.reason) == (
        True,
        1,
        (1, 2),
        (1, 2),
        "TOPIC_CREATED",
    )
    assert (second.partition, second.leader, second.leader_epoch, second.partition_epoch) == (1, 3, 0, 0)
    answer = trio.one(Answer)
    assert (answer.topic_id, answer.assignment) == (created.topic_id, {"0": (1, 2), "1": (3, 1)})
    assert trio.replica_states("t") == "Online,Online"


@pytest.mark.parametrize("absent", [None, -1])
def test_missing_sizes_get_the_clusters_defaults(trio: World, absent: int | None) -> None:
    trio.publish("create_topic", topic="t", partitions=absent, replication_factor=absent)
    assert [len(d.replicas) for d in trio.all(LeaderAndIsr)] == [3, 3]


@pytest.mark.parametrize("sizes", [{"partitions": -1}, {"replication_factor": -1}])
def test_default_sizes_are_allowed_with_an_assignment(trio: World, sizes: dict[str, int]) -> None:
    trio.publish("create_topic", topic="t", assignment={"0": [2, 1]}, **sizes)
    assert (trio.error, trio.line("t")) == ("NONE", "Online leader=2 epoch=0/0 isr=2,1")


def test_replicas_go_to_active_brokers_only(trio: World) -> None:
    trio.fence(2)
    trio.publish("create_topic", topic="t", partitions=6, replication_factor=2)
    assert {replica for d in trio.all(LeaderAndIsr) for replica in d.replicas} == {1, 3}


@pytest.mark.parametrize("only", [True, False])
@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"topic": ""}, "INVALID_TOPIC_EXCEPTION"),
        ({"topic": "."}, "INVALID_TOPIC_EXCEPTION"),
        ({"topic": ".."}, "INVALID_TOPIC_EXCEPTION"),
        ({"topic": "a b"}, "INVALID_TOPIC_EXCEPTION"),
        ({"topic": "a\n"}, "INVALID_TOPIC_EXCEPTION"),
        ({"topic": "é"}, "INVALID_TOPIC_EXCEPTION"),
        ({"topic": "x" * 250}, "INVALID_TOPIC_EXCEPTION"),
        ({"topic": "held_name"}, "INVALID_TOPIC_EXCEPTION"),
        ({"topic": "held.name"}, "TOPIC_ALREADY_EXISTS"),
        ({"partitions": 0}, "INVALID_PARTITIONS"),
        ({"partitions": -2}, "INVALID_PARTITIONS"),
        ({"partitions": 100_001}, "INVALID_PARTITIONS"),
        ({"replication_factor": 0}, "INVALID_REPLICATION_FACTOR"),
        ({"replication_factor": 4}, "INVALID_REPLICATION_FACTOR"),
        ({"assignment": {"0": [1]}, "partitions": 1}, "INVALID_REQUEST"),
        ({"assignment": {"0": [1]}, "replication_factor": 1}, "INVALID_REQUEST"),
        ({"assignment": {}}, "INVALID_REPLICA_ASSIGNMENT"),
        ({"assignment": {"1": [1]}}, "INVALID_REPLICA_ASSIGNMENT"),
        ({"assignment": {"0": [1], "2": [1]}}, "INVALID_REPLICA_ASSIGNMENT"),
        ({"assignment": {"0": []}}, "INVALID_REPLICA_ASSIGNMENT"),
        ({"assignment": {"0": [1, 1]}}, "INVALID_REPLICA_ASSIGNMENT"),
        ({"assignment": {"0": [1, 9]}}, "INVALID_REPLICA_ASSIGNMENT"),
        ({"assignment": {"0": [1, 2], "1": [1]}}, "INVALID_REPLICA_ASSIGNMENT"),
        ({"config": {"min.insync.replicas": 0}}, "INVALID_CONFIG"),
        ({"config": {"unclean.leader.election.enable": "maybe"}}, "INVALID_CONFIG"),
    ],
)
def test_bad_input_is_refused(trio: World, fields: dict[str, Any], error: str, only: bool) -> None:
    trio.create("held.name", (1,))
    trio.publish("create_topic", **({"topic": "t", "validate_only": only, "request_id": "q"} | fields))
    assert (trio.kinds, trio.error, trio.one(Answer).request_id) == ("answer", error, "q")
    assert trio.state.topics.names() == ["held.name"]


def test_the_longest_name_is_allowed(trio: World) -> None:
    trio.create("x" * 249, (1,))
    assert trio.error == "NONE"


def test_two_topics_of_one_batch_collide() -> None:
    world = World(1)
    world.create("a.b", (1,))
    world.create("a_b", (1,))
    assert world.error == "INVALID_TOPIC_EXCEPTION"


def test_partitions_are_added_after_the_others(trio: World) -> None:
    trio.create("t", (1, 2))
    trio.publish("create_partitions", topic="t", total=2, assignment=[[3, 1]])
    assert trio.line("t", 1) == "Online leader=3 epoch=0/0 isr=3,1"
    answer, said = trio.one(Answer), trio.one(LeaderAndIsr)
    assert (said.reason, answer.assignment) == ("PARTITIONS_CREATED", {"1": (3, 1)})
    assert (answer.topic, answer.topic_id) == ("t", said.topic_id)


def test_added_partitions_keep_the_replication_factor_and_continue_round_robin(trio: World) -> None:
    trio.create("t", (1, 2))
    trio.publish("create_partitions", topic="t", total=4)
    assert [d.replicas[0] for d in trio.all(LeaderAndIsr)] == [2, 3, 1]
    assert {len(d.replicas) for d in trio.all(LeaderAndIsr)} == {2}


@pytest.mark.parametrize(
    ("away", "led"), [((), [3, 4]), ((2,), [4, 1]), ((2, 3), [1, 4]), ((2, 3, 4), [1, 1])], ids=str
)
def test_added_partitions_start_after_the_first_replica_or_the_next_active_broker(
    away: tuple[int, ...], led: list[int]
) -> None:
    world = World(1, 2, 3, 4)
    world.create("t", (2,))
    world.fence(*away)
    world.publish("create_partitions", topic="t", total=3)
    assert [d.replicas[0] for d in world.all(LeaderAndIsr)] == led


def test_added_partitions_wrap_to_the_first_broker() -> None:
    world = World(1, 2, 3)
    world.create("t", (3,))
    world.fence(3)
    world.publish("create_partitions", topic="t", total=3)
    assert [d.replicas[0] for d in world.all(LeaderAndIsr)] == [2, 1]


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"topic": "nowhere"}, "UNKNOWN_TOPIC_OR_PARTITION"),
        ({"total": 1}, "INVALID_PARTITIONS"),
        ({"total": 0}, "INVALID_PARTITIONS"),
        ({"total": 100_001}, "INVALID_PARTITIONS"),
        ({"assignment": [[1, 2], [2, 3]]}, "INVALID_REPLICA_ASSIGNMENT"),
        ({"assignment": [[1]]}, "INVALID_REPLICA_ASSIGNMENT"),
        ({"assignment": [[1, 9]]}, "INVALID_REPLICA_ASSIGNMENT"),
        ({"assignment": [[1, 1]]}, "INVALID_REPLICA_ASSIGNMENT"),
    ],
)
def test_invalid_additions_of_partitions_are_refused(trio: World, fields: dict[str, Any], error: str) -> None:
    trio.create("t", (1, 2))
    trio.publish("create_partitions", **({"topic": "t", "total": 2} | fields))
    assert (trio.kinds, trio.error) == ("answer", error)
    assert trio.state.cluster.totals.partitions == 1


def test_added_partitions_may_use_all_brokers(trio: World) -> None:
    trio.create("t", (1, 2, 3))
    trio.publish("create_partitions", topic="t", total=2)
    assert len(trio.one(LeaderAndIsr).replicas) == 3


def test_a_topic_may_be_as_large_as_the_bound(trio: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "PARTITIONS_MAX", 3)
    trio.create("t", (1,), (1,))
    for total, error in ((4, "INVALID_PARTITIONS"), (3, "NONE")):
        trio.publish("create_partitions", topic="t", total=total)
        assert trio.error == error
    for count, error in ((4, "INVALID_PARTITIONS"), (3, "NONE")):
        trio.publish("create_topic", topic="u", partitions=count, validate_only=True)
        assert trio.error == error
        trio.publish("create_topic", topic="u", assignment={str(n): [1] for n in range(count)}, validate_only=True)
        assert trio.error == error


def test_added_partitions_need_enough_brokers(trio: World) -> None:
    trio.create("t", (1, 2, 3))
    trio.fence(3)
    trio.publish("create_partitions", topic="t", total=2)
    assert trio.error == "INVALID_REPLICATION_FACTOR"


def test_partitions_that_are_only_validated_are_not_added() -> None:
    world = World(1, 2)
    world.create("t", (1, 2))
    world.publish("create_partitions", topic="t", total=2, validate_only=True)
    assert (world.kinds, world.error) == ("answer", "NONE")
    assert set(world.one(Answer).assignment or {}) == {"1"}
    assert len(world.state.topics.get("t").partitions) == 1
