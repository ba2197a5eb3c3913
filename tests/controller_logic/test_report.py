"""Brokers' reports about their replicas."""

from typing import Any

import pytest
from msgspec.structs import replace

from state.decisions import LeaderAndIsr, Rejected
from state.view import view_of
from tests.support.world import World


@pytest.fixture
def trio() -> World:
    world = World(1, 2, 3)
    world.create("t", (1, 2, 3))
    return world


def report(world: World, broker: int, outcome: str, **fields: Any) -> None:
    where = {"topic": "t", "partition": 0, "broker": broker, "broker_epoch": world.broker(broker).broker_epoch}
    event = where | {"leader_epoch": world.partition("t").leader_epoch, "outcome": outcome}
    world.publish("replica_report", **(event | fields))


def test_a_leader_that_lost_its_log_is_replaced(trio: World) -> None:
    report(trio, 1, "offline")
    assert trio.line("t") == "Online leader=2 epoch=1/1 isr=2,3"
    assert trio.leader_decision == "LEADER_FENCED to 2,3"
    assert trio.broker(1).is_active


def test_a_storage_error_counts_as_a_lost_log(trio: World) -> None:
    report(trio, 2, "error", error="KAFKA_STORAGE_ERROR")
    assert trio.line("t") == "Online leader=1 epoch=1/1 isr=1,3"


@pytest.mark.parametrize("error", ["FENCED_LEADER_EPOCH", "STALE_CONTROLLER_EPOCH", None])
def test_another_error_leaves_the_replica_online(trio: World, error: str | None) -> None:
    report(trio, 1, "error", error=error)
    assert trio.decisions == []
    assert trio.replica_states("t") == "Online,Online,Online"


def test_a_replica_without_its_log_does_not_lead_even_if_its_broker_is_active(trio: World) -> None:
    report(trio, 2, "offline")
    trio.fence(1)
    assert trio.line("t") == "Online leader=3 epoch=2/2 isr=3"


@pytest.mark.parametrize("outcome", ["leader", "follower"])
def test_a_replica_that_follows_or_leads_again_is_online(trio: World, outcome: str) -> None:
    report(trio, 3, "offline")
    report(trio, 3, outcome)
    assert trio.replica_states("t") == "Online,Online,Online"
    assert trio.leader_decision == "REPLICA_ONLINE to 3"


def test_a_replica_that_follows_in_an_old_epoch_stays_offline(trio: World) -> None:
    report(trio, 3, "offline")
    report(trio, 3, "follower", leader_epoch=0)
    assert trio.replica_states("t") == "Online,Online,Offline"


@pytest.mark.parametrize("outcome", ["leader", "follower", "stopped", "deleted"])
def test_a_report_of_the_expected_state_decides_nothing(trio: World, outcome: str) -> None:
    before = trio.partition("t")
    report(trio, 1, outcome)
    after = replace(trio.partition("t"), completed_epochs=(), received_epochs=())
    assert (trio.decisions, after) == ([], before)


def test_the_view_shows_each_replicas_epochs(trio: World) -> None:
    report(trio, 1, "leader")
    report(trio, 3, "follower")
    assert trio.partition("t").completed_epochs == (0, -1, 0)
    trio.alter_isr("t", (1, 3))
    trio.fence(1)
    report(trio, 3, "leader")
    report(trio, 3, "follower", leader_epoch=0)
    report(trio, 2, "follower", leader_epoch=9)
    assert trio.partition("t").completed_epochs == (0, -1, 1)
    assert shown(trio) == {"1": 0, "3": 1}


def test_completed_epochs_move_with_their_replica(trio: World) -> None:
    trio.join(4)
    report(trio, 3, "follower")
    trio.publish("alter_reassignment", topic="t", partition=0, replicas=[4, 3])
    report(trio, 4, "follower")
    assert shown(trio) == {"3": 0, "4": 1}


def shown(world: World) -> dict[str, int]:
    topic = world.state.topics.get("t")
    assert topic is not None
    partitions = view_of(world.state.cluster, [topic])["partitions"]
    return dict(partitions[0]["completed_epochs"])


@pytest.mark.parametrize("outcome", ["stopped", "deleted", "error"])
def test_a_replica_that_does_not_follow_stays_offline(trio: World, outcome: str) -> None:
    report(trio, 3, "offline")
    report(trio, 3, outcome)
    assert trio.replica_states("t") == "Online,Online,Offline"


def test_a_report_with_a_request_id_is_answered(trio: World) -> None:
    report(trio, 1, "leader", request_id="q")
    assert (trio.kinds, trio.error) == ("answer", "NONE")
    trio.join(4)
    report(trio, 4, "leader", request_id="q")
    assert (trio.kinds, trio.error) == ("answer,rejected", "INVALID_REQUEST")
    trio.publish("delete_topic", topic="t")
    report(trio, 1, "stopped", request_id="q")
    assert (trio.kinds, trio.error) == ("answer", "NONE")


def test_a_report_of_an_old_incarnation_is_refused(trio: World) -> None:
    report(trio, 1, "offline", broker_epoch=0)
    assert (trio.kinds, trio.error) == ("answer", "STALE_BROKER_EPOCH")


def test_a_report_about_an_unknown_partition_is_answered_if_it_has_a_request_id(trio: World) -> None:
    report(trio, 1, "offline", topic="nowhere", request_id=1)
    assert trio.error == "UNKNOWN_TOPIC_OR_PARTITION"
    trio.join(4)
    report(trio, 4, "offline")
    assert trio.one(Rejected).field == "broker"
    assert trio.all(LeaderAndIsr) == []
