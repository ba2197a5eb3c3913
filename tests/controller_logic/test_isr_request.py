"""A leader asks for the ISRs of many partitions at once."""

from typing import Any

import pytest

from controller_logic.replay import decide
from state.alike import AlikeDecisions
from state.canonical import RESULTS_MAX
from state.decisions import Answer, LeaderAndIsr, Rejected
from state.policy import Policy
from tests.support.world import World


@pytest.fixture
def storm() -> World:
    """Topics t and u, of twenty partitions each, led by 1."""
    world = World()
    world.claim()
    for broker in (1, 2, 3):
        world.join(broker)
    world.create("t", *[(1, 2, 3)] * 20)
    world.create("u", *[(1, 2, 3)] * 20)
    return world


def results(world: World) -> list[tuple[str, int, str]]:
    answer = world.one(Answer)
    return [(one.topic, one.partition, one.error) for one in answer.results or ()]


def test_all_rows_are_committed_and_the_request_is_answered_once(storm: World) -> None:
    storm.alter_isrs(1, *[(topic, number, (1, 2)) for topic in "tu" for number in range(20)], request_id="q")
    assert {(d.topic, d.partition, d.isr, d.reason) for d in storm.all(LeaderAndIsr)} == {
        (topic, number, (1, 2), "ISR_SHRUNK") for topic in "tu" for number in range(20)
    }
    answer = storm.one(Answer)
    assert (answer.request, answer.request_id, answer.error, answer.results) == ("alter_isrs", "q", "NONE", ())
    assert storm.state.cluster.watermarks_due == tuple((topic, number) for topic in "tu" for number in range(20))
    assert sum(len(one.rows) for one in storm.outcome.said if isinstance(one, AlikeDecisions)) == 39, (
        "the rule was asked once"
    )


def test_a_refused_row_does_not_hold_up_the_others(storm: World) -> None:
    storm.fence(3)
    asked = [("t", 0, (1,)), ("t", 1, (1, 2, 3)), ("t", 2, (2,)), ("u", 4, (1,))]
    storm.alter_isrs(1, *asked)
    assert [(d.topic, d.partition) for d in storm.all(LeaderAndIsr)] == [("t", 0), ("u", 4)]
    assert results(storm) == [("t", 1, "INELIGIBLE_REPLICA"), ("t", 2, "INVALID_REQUEST")]
    assert storm.one(Answer).error == "INELIGIBLE_REPLICA"


def test_what_is_not_there_is_refused_row_by_row(storm: World) -> None:
    rows = [[0, 0, 0, [1]], [20, 0, 0, [1]]]
    topics = [
        {"topic": "t", "partitions": rows},
        {"topic": "nowhere", "partitions": rows[:1]},
        {"topic": "u", "topic_id": "another", "partitions": rows[:1]},
    ]
    storm.publish("alter_isrs", broker=1, broker_epoch=storm.broker(1).broker_epoch, topics=topics)
    assert results(storm) == [
        ("nowhere", 0, "UNKNOWN_TOPIC_OR_PARTITION"),
        ("t", 20, "UNKNOWN_TOPIC_OR_PARTITION"),
        ("u", 0, "UNKNOWN_TOPIC_ID"),
    ]
    assert len(storm.all(LeaderAndIsr)) == 1
    log = list(enumerate(storm.log, start=1))
    assert decide(log, Policy(), shards=7).decisions == decide(log, Policy()).decisions


def test_a_partition_that_is_named_twice_is_refused_both_times(storm: World) -> None:
    storm.alter_isrs(1, ("t", 0, (1,)), ("t", 1, (1,)), ("t", 0, (1, 2)))
    assert results(storm) == [("t", 0, "INVALID_REQUEST")] * 2
    assert [d.partition for d in storm.all(LeaderAndIsr)] == [1]


def test_a_partition_of_an_unknown_topic_that_is_named_twice_is_refused_for_that(storm: World) -> None:
    rows = [[0, 0, 0, [1]], [1, 0, 0, [1]], [0, 0, 0, [1]]]
    topics = [{"topic": "nowhere", "partitions": rows}]
    storm.publish("alter_isrs", broker=1, broker_epoch=storm.broker(1).broker_epoch, topics=topics)
    twice, unknown = ("nowhere", 0, "INVALID_REQUEST"), ("nowhere", 1, "UNKNOWN_TOPIC_OR_PARTITION")
    assert results(storm) == [twice, twice, unknown]


def test_a_request_may_name_as_many_partitions_as_an_answer_names(storm: World) -> None:
    topics = [{"topic": "nowhere", "partitions": [[number, 0, 0, [1]] for number in range(RESULTS_MAX)]}]
    storm.publish("alter_isrs", broker=1, broker_epoch=storm.broker(1).broker_epoch, topics=topics)
    assert len(results(storm)) == RESULTS_MAX


def test_a_joiner_that_is_behind_is_refused_alone(storm: World) -> None:
    storm.alter_isrs(1, *[("t", number, (1, 2)) for number in range(3)])
    for number, end in enumerate((10, 10, 4)):
        storm.offsets("t", number, b1=10, b2=10, b3=end)
    storm.tick(100)
    storm.alter_isrs(1, *[("t", number, (1, 2, 3)) for number in range(3)])
    assert results(storm) == [("t", 2, "INELIGIBLE_REPLICA")]
    assert [d.partition for d in storm.all(LeaderAndIsr)] == [0, 1]


def test_rows_that_ask_for_something_else_are_decided_anew(storm: World) -> None:
    epochs = [storm.broker(1).broker_epoch, storm.broker(2).broker_epoch]
    rows: list[list[Any]] = [
        [0, 0, 0, [1, 2], epochs],
        [1, 0, 0, [1, 2], [epochs[0], epochs[1] + 1]],
        [2, 0, 0, [1, 2], epochs, "RECOVERING"],
        [3, 0, 0, [1, 2], epochs, 0],
        [4, 1, 0, [1, 2], epochs],
        [5, 0, 1, [1, 2], epochs],
        [6, 0, 0, [1, 2]],
    ]
    named = [{"topic": "t", "partitions": rows}]
    storm.publish("alter_isrs", broker=1, broker_epoch=storm.broker(1).broker_epoch, topics=named)
    assert [d.partition for d in storm.all(LeaderAndIsr)] == [0, 3, 6]
    assert results(storm) == [
        ("t", 1, "INELIGIBLE_REPLICA"),
        ("t", 2, "INVALID_REQUEST"),
        ("t", 4, "NOT_CONTROLLER"),
        ("t", 5, "NOT_CONTROLLER"),
    ]


@pytest.mark.parametrize(
    ("topics", "message"),
    [
        ([{"topic": "t", "partitions": [[0, 0, 0, [1]]]}] * 2, "a topic is named twice"),
        (
            [{"topic": topic, "partitions": [[n, 0, 0, [1]] for n in range(6_000)]} for topic in "tu"],
            f"name at most {RESULTS_MAX} partitions, not 12000",
        ),
    ],
)
def test_a_request_that_is_unclear_or_too_long_changes_nothing(storm: World, topics: list[Any], message: str) -> None:
    storm.publish("alter_isrs", broker=1, broker_epoch=storm.broker(1).broker_epoch, topics=topics)
    [answer] = storm.decisions
    assert isinstance(answer, Answer)
    assert (answer.error, answer.message) == ("INVALID_REQUEST", message)


@pytest.mark.parametrize(
    ("topics", "field"),
    [
        ([], "topics"),
        ([{"topic": "t", "partitions": []}], "topics[0].partitions"),
        ([{"topic": "t", "partitions": [[0, 0, 0]]}], "topics[0].partitions[0]"),
        ([{"topic": "t", "partitions": [[0, 0, 0, [1]], [1, 0, 0, [1, "x"]]]}], "topics[0].partitions[1][3][1]"),
        ([{"topic": "t", "partitions": [[0, 0, 0, [1], None, 7]]}], "topics[0].partitions[0][5]"),
        ([{"topic": "t" * 250, "partitions": [[0, 0, 0, [1]]]}], "topics[0].topic"),
    ],
)
def test_a_malformed_request_is_rejected_by_its_field(storm: World, topics: list[Any], field: str) -> None:
    epoch = storm.broker(1).broker_epoch
    storm.publish_raw(storm.text_of("alter_isrs", broker=1, broker_epoch=epoch, topics=topics))
    assert storm.one(Rejected).field == field


def test_an_unknown_broker_is_rejected_once_in_any_number_of_shards() -> None:
    world = World()
    world.claim()
    world.create("t", (1,))
    rows = [{"topic": topic, "partitions": [[0, 0, 0, [1]]]} for topic in ("t", "u", "v")]
    world.publish("alter_isrs", broker=9, broker_epoch=1, topics=rows, request_id="q")
    assert (world.one(Rejected).field, world.one(Answer).error) == ("broker", "BROKER_ID_NOT_REGISTERED")
    log = list(enumerate(world.log, start=1))
    assert decide(log, Policy(), shards=7).decisions == decide(log, Policy()).decisions
