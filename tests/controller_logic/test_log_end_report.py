"""A broker reports where the logs of many of its replicas end, in one event."""

import json
from typing import Any

import pytest

from controller_logic.replay import decide
from controller_logic.step import step
from state.canonical import RESULTS_MAX
from state.decisions import Answer, HighWatermark, Rejected
from state.event_text import decode
from state.events import Logged
from state.policy import Policy
from tests.support.world import World


@pytest.fixture
def trio() -> World:
    """Topics t and u, of five partitions each, led by 1."""
    world = World()
    world.claim()
    for broker in (1, 2, 3):
        world.join(broker)
    world.create("t", *[(1, 2, 3)] * 5)
    world.create("u", *[(1, 2, 3)] * 5)
    return world


def everything(end: int) -> list[tuple[str, int, int]]:
    return [(topic, number, end) for topic in "tu" for number in range(5)]


def watermarks(world: World) -> dict[tuple[str, int], int]:
    return {(one.topic, one.partition): one.high_watermark for one in world.all(HighWatermark)}


def results(world: World) -> list[tuple[str, int, str]]:
    answer = world.one(Answer)
    return [(one.topic, one.partition, one.error) for one in answer.results or ()]


def test_the_lowest_end_of_each_partition_becomes_its_high_watermark_at_the_next_tick(trio: World) -> None:
    for broker, end in ((1, 9), (2, 7), (3, 8)):
        assert trio.log_ends(broker, *everything(end)) == []
    assert trio.state.cluster.watermarks_due == tuple((topic, number) for topic, number, _ in everything(0))
    trio.tick()
    assert watermarks(trio) == {(topic, number): 7 for topic, number, _ in everything(0)}
    assert not trio.state.cluster.watermarks_due
    trio.tick()
    assert watermarks(trio) == {}


def test_a_report_is_answered_if_it_asks_for_that(trio: World) -> None:
    trio.log_ends(1, *everything(5), request_id="q")
    answer = trio.one(Answer)
    assert (answer.request, answer.request_id, answer.error, answer.results) == ("log_end_offsets", "q", "NONE", ())


def test_refused_rows_are_named_in_one_answer_and_the_others_count(trio: World) -> None:
    epoch = trio.broker(3).broker_epoch
    trio.create("v", (1, 2))
    row = [0, trio.partition("t").leader_epoch, 5]
    topics: list[dict[str, Any]] = [
        {"topic": "v", "partitions": [row]},
        {"topic": "t", "partitions": [row, [5, 0, 1]]},
        {"topic": "nowhere", "partitions": [row]},
    ]
    trio.publish("log_end_offsets", broker=3, broker_epoch=epoch, topics=topics)
    missing = "UNKNOWN_TOPIC_OR_PARTITION"
    assert results(trio) == [("nowhere", 0, missing), ("t", 5, missing), ("v", 0, "INVALID_REQUEST")]
    assert trio.one(Answer).error == missing
    assert trio.partition("t").log_end_offsets == (-1, -1, 5)


def test_what_is_said_of_a_namesake_is_passed_over_and_named_if_asked_for(trio: World) -> None:
    report = {"broker": 1, "broker_epoch": trio.broker(1).broker_epoch}
    topics = [{"topic": "t", "topic_id": "another", "partitions": [[0, 0, 5]]}]
    assert trio.publish("log_end_offsets", **report, topics=topics) == []
    trio.publish("log_end_offsets", **report, topics=topics, request_id="q")
    assert results(trio) == [("t", 0, "UNKNOWN_TOPIC_ID")]
    assert trio.partition("t").log_end_offsets == ()


@pytest.mark.parametrize("field", ["broker_epoch", "leader_epoch"])
def test_rows_of_another_epoch_are_passed_over(trio: World, field: str) -> None:
    if field == "broker_epoch":
        assert trio.log_ends(1, *everything(5), broker_epoch=trio.broker(1).broker_epoch - 1) == []
    else:
        epoch = trio.partition("t").leader_epoch + 1
        assert trio.log_ends(1, topics=[{"topic": "t", "partitions": [[0, epoch, 5]]}]) == []
    assert trio.partition("t").log_end_offsets == ()
    assert not trio.state.cluster.watermarks_due


def test_rows_about_one_partition_count_in_their_order(trio: World) -> None:
    trio.log_ends(1, ("t", 0, 9), ("t", 1, 4), ("t", 0, 6))
    assert trio.partition("t").log_end_offsets == (6, -1, -1)
    assert trio.partition("t", 1).log_end_offsets == (4, -1, -1)


def test_a_broker_that_is_not_registered_is_refused(trio: World) -> None:
    topics = [{"topic": "t", "partitions": [[0, 0, 5]]}]
    trio.publish("log_end_offsets", broker=8, broker_epoch=1, topics=topics, request_id="q")
    assert trio.one(Rejected).reason == "UNKNOWN_BROKER"
    assert trio.one(Answer).error == "BROKER_ID_NOT_REGISTERED"


def test_a_report_of_too_many_rows_is_refused(trio: World) -> None:
    rows = [[number, 0, 0] for number in range(RESULTS_MAX)]
    topics = [{"topic": "t", "partitions": rows}, {"topic": "u", "partitions": [[0, 0, 5]]}]
    report = {"broker": 1, "broker_epoch": trio.broker(1).broker_epoch, "topics": topics}
    trio.publish("log_end_offsets", **report, request_id="q")
    assert trio.one(Answer).error == "INVALID_REQUEST"
    assert trio.one(Rejected).field == "topics"
    assert trio.partition("u").log_end_offsets == ()


def test_shards_name_what_each_of_them_refuses_in_one_answer(trio: World) -> None:
    rows = [[0, 0, 0]]
    topics = [{"topic": f"unknown{n}", "partitions": rows} for n in range(8)]
    trio.publish("log_end_offsets", broker=1, broker_epoch=trio.broker(1).broker_epoch, topics=topics)
    assert len(results(trio)) == 8
    log = list(enumerate(trio.log, start=1))
    assert decide(log, Policy(), shards=7).decisions == decide(log, Policy()).decisions


def test_each_of_several_reports_in_a_batch_is_answered_in_its_own_name(trio: World) -> None:
    rows = [[0, trio.partition("t").leader_epoch, 5], [7, 0, 5]]
    first = trio.state.cluster.seq + 1
    for broker, name in ((1, "t"), (8, "t"), (2, "unknown"), (3, "u")):
        epoch = trio.broker(broker).broker_epoch if broker < 8 else 1
        topics = [{"topic": name, "partitions": rows}]
        trio.publish("log_end_offsets", broker=broker, broker_epoch=epoch, topics=topics, request_id=f"q{broker}")
    log = list(enumerate(trio.log, start=1))
    made = decide(log, Policy()).decisions
    answers = [(seq - first, json.loads(text)["error"]) for seq, _, text in made if b'"request_id":"q' in text]
    missing = "UNKNOWN_TOPIC_OR_PARTITION"
    assert answers == [(0, missing), (1, "BROKER_ID_NOT_REGISTERED"), (2, missing), (3, missing)]
    assert decide(log, Policy(), batch_sizes=[1]).decisions == made


def test_after_the_answers_to_its_reports_a_batch_ends_at_its_last_event(trio: World) -> None:
    asked = {"topics": [{"topic": "t", "partitions": [[0, 0, 5]]}], "broker_epoch": trio.broker(1).broker_epoch}
    first = trio.state.cluster.seq + 1
    events = []
    for seq, given in enumerate(({"request_id": "q"}, {}), start=first):
        raw = trio.text_of("log_end_offsets", broker=1, **asked, **given)
        events.append(Logged(seq, trio.now, decode(raw), raw))
    outcome = step(trio.state, events, Policy())
    assert ([decision.seq for decision in outcome.decisions], outcome.state.cluster.seq) == ([first], first + 1)
    # Later batches skip both.
    assert step(outcome.state, events, Policy()).decisions == []


def test_what_is_said_of_a_replica_that_was_removed_lately_is_passed_over(trio: World) -> None:
    trio.publish("alter_reassignment", topic="t", partition=0, replicas=[1, 2])
    trio.log_ends(3, ("t", 0, 5), ("t", 1, 5))
    assert trio.all(Answer) == []
    assert (trio.partition("t").log_end_offsets, trio.partition("t", 1).log_end_offsets[2]) == ((), 5)


def test_a_high_watermark_that_a_leader_lost_and_regained_between_two_ticks_is_decided_again(trio: World) -> None:
    trio.create("alone", (1,))
    trio.log_ends(1, ("alone", 0, 10))
    trio.tick()
    assert watermarks(trio) == {("alone", 0): 10}
    trio.join(1, incarnation="second")
    trio.log_ends(1, ("alone", 0, 4))
    trio.log_ends(1, ("alone", 0, 10))
    trio.tick()
    assert watermarks(trio) == {("alone", 0): 10}
