"""A broker reports on many of its replicas in one event."""

from typing import Any

import pytest

from controller_logic.replay import decide
from state.canonical import RESULTS_MAX
from state.decisions import Answer, LeaderAndIsr, Rejected, TopicDecision
from state.policy import Policy
from tests.support.world import World, claimed

LOST = ("error", "KAFKA_STORAGE_ERROR")


@pytest.fixture
def trio() -> World:
    """Topics t and u, of three partitions each, led by 1."""
    world = claimed(1, 2, 3)
    for name in "tu":
        world.create(name, *[(1, 2, 3)] * 3)
    return world


def report(world: World, broker: int, rows: dict[str, list[list[Any]]], **fields: Any) -> None:
    topics = [{"topic": name, "partitions": some} for name, some in rows.items()]
    told = {"broker": broker, "broker_epoch": world.broker(broker).broker_epoch, "topics": topics}
    world.publish("replica_reports", **(told | fields))


def results(world: World) -> list[tuple[str, int, str]]:
    answer = world.one(Answer)
    return [(one.topic, one.partition, one.error) for one in answer.results or ()]


def test_each_row_counts(trio: World) -> None:
    rows = {"t": [[0, 0, "offline"], [1, 0, "error", "FENCED_LEADER_EPOCH"], [2, 0, "leader"]], "u": [[1, 0, *LOST]]}
    report(trio, 1, rows)
    assert trio.line("t") == trio.line("u", 1) == "Online leader=2 epoch=1/1 isr=2,3"
    assert trio.line("t", 1) == trio.line("t", 2) == "Online leader=1 epoch=0/0 isr=1,2,3"
    assert [(one.topic, one.partition) for one in trio.all(LeaderAndIsr)] == [("t", 0), ("u", 1)]
    assert trio.partition("t", 2).completed_epochs == (0, -1, -1)
    assert trio.partition("t", 1).received_epochs == (0, -1, -1)
    report(trio, 1, {"t": [[0, 1, "follower"]], "u": [[1, 0, "follower"]]})
    assert trio.replica_states("t") == "Online,Online,Online"
    assert trio.replica_states("u", 1) == "Offline,Online,Online"
    assert trio.all(Answer) == []


def test_the_last_row_about_a_deleted_topic_ends_its_deletion(trio: World) -> None:
    trio.publish("delete_topic", topic="t")
    gone: list[list[Any]] = [[number, -2, "deleted"] for number in range(3)]
    report(trio, 1, {"t": gone})
    report(trio, 2, {"t": [*gone[:2], [2, -2, "error", "KAFKA_STORAGE_ERROR"]]})
    assert trio.one(TopicDecision).state == "ineligible"
    trio.publish("delete_topic", topic="t")
    report(trio, 2, {"t": gone})
    assert trio.decisions == []
    report(trio, 3, {"t": [*gone, [0, -2, "deleted"]], "u": [[0, 0, "offline"]]}, request_id="q")
    assert trio.one(TopicDecision).state == "deleted"
    assert trio.state.topics.get("t") is None
    assert results(trio) == [("t", 0, "UNKNOWN_TOPIC_OR_PARTITION")]
    assert trio.line("u") == "Online leader=1 epoch=1/1 isr=1,2"


def test_a_replica_that_a_reassignment_removed_is_forgotten(trio: World) -> None:
    trio.publish("alter_reassignment", topic="t", partition=0, replicas=[1, 2])
    assert [entry.broker for entry in trio.partition("t").removed] == [3]
    report(trio, 3, {"t": [[0, trio.partition("t").leader_epoch, "deleted"]]})
    assert trio.partition("t").removed == ()


def test_a_report_is_answered_only_if_it_asks_for_that(trio: World) -> None:
    trio.create("v", (1, 2))
    rows = {"v": [[0, 0, "offline"]], "t": [[2, 0, "offline"], [3, 0, "leader"]], "nowhere": [[0, 0, "leader"]]}
    report(trio, 3, rows, request_id="q")
    missing = "UNKNOWN_TOPIC_OR_PARTITION"
    assert results(trio) == [("nowhere", 0, missing), ("t", 3, missing), ("v", 0, "INVALID_REQUEST")]
    assert (trio.one(Answer).error, trio.all(Rejected)) == (missing, [])
    assert trio.line("t", 2) == "Online leader=1 epoch=1/1 isr=1,2"
    report(trio, 3, rows)
    assert trio.decisions == []
    report(trio, 2, {"t": [[0, 0, "follower"]]}, request_id="q")
    assert (trio.error, results(trio)) == ("NONE", [])


def test_what_is_said_of_a_namesake_does_not_count(trio: World) -> None:
    topics = [{"topic": "t", "topic_id": "another", "partitions": [[0, 0, "offline"]]}]
    report(trio, 1, {}, topics=topics)
    assert trio.decisions == []
    report(trio, 1, {}, topics=topics, request_id="q")
    assert results(trio) == [("t", 0, "UNKNOWN_TOPIC_ID")]
    assert trio.replica_states("t") == "Online,Online,Online"


def test_a_replica_may_be_reported_again_until_a_row_takes_it_offline(trio: World) -> None:
    rows: list[list[Any]] = [[0, 0, "follower"], [0, 0, "leader"], [0, 0, "offline"], [0, 1, "follower"]]
    report(trio, 1, {"t": rows}, request_id="q")
    assert results(trio) == [("t", 0, "INVALID_REQUEST")]
    assert trio.one(LeaderAndIsr).reason == "LEADER_FENCED"
    assert trio.replica_states("t") == "Offline,Online,Online"


@pytest.mark.parametrize("given", [{}, {"request_id": "q"}])
def test_a_report_of_an_old_incarnation_is_refused_once(trio: World, given: dict[str, Any]) -> None:
    report(trio, 1, {"t": [[0, 0, "offline"], [1, 0, "offline"]]}, broker_epoch=0, **given)
    assert (trio.kinds, trio.error) == ("answer", "STALE_BROKER_EPOCH")
    assert trio.replica_states("t") == "Online,Online,Online"


def test_a_report_of_too_many_rows_is_refused(trio: World) -> None:
    rows: list[list[Any]] = [[number, 0, "offline"] for number in range(RESULTS_MAX)]
    report(trio, 1, {"t": rows, "u": [[0, 0, "offline"]]}, request_id="q")
    assert (trio.error, trio.one(Rejected).field) == ("INVALID_REQUEST", "topics")
    assert trio.replica_states("t") == trio.replica_states("u") == "Online,Online,Online"
    report(trio, 1, {"t": rows})
    assert trio.replica_states("t") == "Offline,Online,Online"


def test_shards_name_what_each_of_them_refuses_in_one_answer(trio: World) -> None:
    report(trio, 1, {f"unknown{n}": [[0, 0, "leader"]] for n in range(8)}, request_id="q")
    assert len(results(trio)) == 8
    report(trio, 2, {name: [[number, 0, "offline"] for number in range(3)] for name in "tu"}, request_id="q")
    log = list(enumerate(trio.log, start=1))
    assert decide(log, Policy(), shards=7).decisions == decide(log, Policy()).decisions
