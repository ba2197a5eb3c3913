"""Brokers whose log directories are all cordoned get no new replicas (KIP-1066)."""

from typing import Any

import pytest

from state.decisions import Answer, BrokerDecision
from state.reason import Reason
from state.stored.codec import decode_cluster, encode_cluster
from tests.controller_logic import test_acls
from tests.support.world import World


def world(*, level: int = 2) -> World:
    """Brokers 11, 12 and 13 behind a gateway, with two log directories each, on a bus at ``level``."""
    made = World()
    made.publish("controller_started", controller_id="c", controller_epoch=1, level=level)
    made.tick()
    made.publish("raise_level", level=level)
    made.publish("gateway_started", gateway=100, incarnation="g", voters=[100], is_kraft=True, level=level)
    for broker in (11, 12, 13):
        made.join(broker, behind_gateway=True, log_dirs=[f"{broker}A", f"{broker}B"])
    return made


def cordon(made: World, broker: int, *directories: str, **more: Any) -> None:
    made.beat(broker, cordoned_log_dirs=list(directories), **more)


def created(made: World, topic: str, factor: int = 2) -> set[int]:
    """Create a topic of twelve partitions, and return the brokers that have any of its replicas."""
    made.publish("create_topic", topic=topic, partitions=12, replication_factor=factor, request_id="c")
    return {broker for replicas in made.one(Answer).assignment.values() for broker in replicas}


def test_the_decision_names_what_is_cordoned_once() -> None:
    made = world()
    cordon(made, 11, "11B", "unknown")
    decided = made.one(BrokerDecision)
    assert (decided.reason, decided.cordoned_log_dirs, decided.state) == (Reason.LOG_DIRS_CORDONED, ("11B",), "active")
    cordon(made, 11, "11B")
    assert made.all(BrokerDecision) == []
    cordon(made, 11)
    assert made.one(BrokerDecision).cordoned_log_dirs != ("11B",)
    assert made.broker(11).cordoned_log_dirs == ()


def test_a_heartbeat_that_names_none_changes_nothing() -> None:
    made = world()
    cordon(made, 11, "11A")
    made.beat(11)
    assert made.broker(11).cordoned_log_dirs == ("11A",)


def test_cordoned_and_failed_directories_are_one_decision() -> None:
    made = world()
    cordon(made, 11, "11B", offline_log_dirs=["11A"])
    decided = made.one(BrokerDecision)
    assert (decided.reason, decided.cordoned_log_dirs, decided.log_dirs) == (
        Reason.LOG_DIR_FAILED,
        ("11B",),
        ("11B",),
    )
    assert made.broker(11).is_cordoned


def test_new_replicas_go_to_other_brokers() -> None:
    made = world()
    assert created(made, "before") == {11, 12, 13}
    cordon(made, 11, "11A")
    assert created(made, "half") == {11, 12, 13}, "one directory is left"
    cordon(made, 11, "11A", "11B")
    assert created(made, "after") == {12, 13}
    made.publish("create_partitions", topic="before", total=24, request_id="p")
    assert {broker for replicas in made.one(Answer).assignment.values() for broker in replicas} == {12, 13}
    made.publish("create_topic", topic="large", partitions=1, replication_factor=3, request_id="c")
    assert made.error == "INVALID_REPLICATION_FACTOR"
    cordon(made, 11)
    assert created(made, "again") == {11, 12, 13}


def test_a_request_may_not_place_a_replica_there() -> None:
    made = world()
    made.create("t", (11, 12))
    cordon(made, 11, "11A", "11B")
    made.publish("create_topic", topic="u", assignment={"0": [11, 12]}, request_id="c")
    assert (made.error, "[11] are cordoned" in made.one(Answer).message) == ("INVALID_REPLICA_ASSIGNMENT", True)
    made.publish("create_partitions", topic="t", total=2, assignment=[[12, 11]], request_id="p")
    assert made.error == "INVALID_REPLICA_ASSIGNMENT"
    made.publish("alter_reassignment", topic="t", partition=0, replicas=[11, 13], request_id="r")
    assert made.error == "NONE", "a replica that is there may stay"
    made.publish("create_topic", topic="v", assignment={"0": [12, 13]}, request_id="c")
    made.publish("alter_reassignment", topic="v", partition=0, replicas=[12, 11], request_id="r")
    assert (made.error, "[11] are added" in made.one(Answer).message) == ("INVALID_REPLICA_ASSIGNMENT", True)


def test_a_new_process_begins_without_any() -> None:
    """As in Kafka, whose broker names them with its first heartbeat."""
    made = world()
    cordon(made, 11, "11A", "11B")
    made.beat(11, shutdown=True)
    made.beat(11, fence=True)
    made.join(11, incarnation="later", behind_gateway=True, log_dirs=["11A", "11B"])
    assert made.broker(11).cordoned_log_dirs == ()


def test_a_bus_at_level_1_keeps_none() -> None:
    made = world(level=1)
    cordon(made, 11, "11A", "11B")
    assert (made.all(BrokerDecision), made.broker(11).cordoned_log_dirs) == ([], ())
    assert created(made, "t") == {11, 12, 13}


@pytest.mark.parametrize("level", [1, 2])
def test_what_is_stored_is_read_back(level: int) -> None:
    made = world(level=level)
    cordon(made, 11, "11A")
    cluster = made.state.cluster
    assert decode_cluster(encode_cluster(cluster)) == cluster


def test_a_broker_without_a_gateway_has_none() -> None:
    made = test_acls.world(is_kraft=False)
    made.join(14, log_dirs=["A"])
    cordon(made, 14, "A")
    assert made.broker(14).cordoned_log_dirs == ()
