"""Decisions that concern several shards: each shard gives its part, and they are merged."""

import json
from typing import Any

import pytest

from controller_logic.replay import decide
from state.ids import shard_of
from state.policy import Policy

TOPICS = ("a", "b", "c", "d")


def event(kind: str, **fields: Any) -> bytes:
    return json.dumps({"kind": kind, "time_ms": 1, **fields}).encode()


def alone_on_1(topic: str) -> list[bytes]:
    """Create a topic on 1 and 2, with 1 alone in sync."""
    request = {"topic": topic, "partition": 0, "broker": 1, "broker_epoch": 1, "leader_epoch": 0, "partition_epoch": 0}
    return [event("create_topic", topic=topic, assignment={"0": [1, 2]}), event("alter_isr", **request, isr=[1])]


CONTENT = {"want_fence": False, "want_shutdown": False}
WORLD = [
    *(event("broker_register", broker=broker, incarnation="i") for broker in (1, 2)),
    *(event("broker_heartbeat", broker=broker, broker_epoch=broker, **CONTENT) for broker in (1, 2)),
    *(raw for topic in TOPICS for raw in alone_on_1(topic)),
]


def said(last: bytes, shards: int) -> list[dict[str, Any]]:
    entries = list(enumerate([*WORLD, last], start=1))
    decisions = decide(entries, Policy(), shards=shards).decisions
    return [json.loads(body) for seq, _, body in decisions if seq == len(entries)]


def test_the_topics_are_in_several_shards() -> None:
    assert len({shard_of(topic, 16) for topic in TOPICS}) > 1
    assert any(shard_of(topic, 16) != 0 for topic in TOPICS)


@pytest.mark.parametrize("shards", [1, 3, 16])
@pytest.mark.parametrize(
    "last",
    [
        event("controlled_shutdown", broker=1, broker_epoch=1),
        event("broker_heartbeat", broker=1, broker_epoch=1, want_fence=False, want_shutdown=True),
    ],
)
def test_remaining_partitions_of_a_shutdown_are_summed(last: bytes, shards: int) -> None:
    decisions = said(last, shards)
    assert [(d["kind"], d["remaining"]) for d in decisions] == [("broker", 4), ("answer", 4)]
    assert decisions[0]["state"] == "controlled_shutdown"


@pytest.mark.parametrize("shards", [1, 3, 16])
def test_an_election_of_many_has_one_answer(shards: int) -> None:
    named = [{"topic": topic, "partition": number} for topic in (*TOPICS, "nowhere") for number in (0, 1)]
    (answer,) = said(event("elect_leaders", election_type="preferred", partitions=named), shards)
    assert len(answer["results"]) == 10
    assert (answer["error"], answer["message"]) == ("ELECTION_NOT_NEEDED", "broker 1 leads already")
    (answer,) = said(event("elect_leaders", election_type="preferred", partitions=None), shards)
    assert (answer["error"], answer["results"], answer["reason"]) == ("NONE", [], "REQUEST_DONE")


@pytest.mark.parametrize("shards", [1, 3, 16])
@pytest.mark.parametrize("topic", [*TOPICS, "nowhere"])
def test_a_topics_settings_are_answered_once_by_its_own_shard(shards: int, topic: str) -> None:
    decisions = said(event("alter_config", entity="topic", name=topic, config={"x": 1}), shards)
    assert [d["kind"] for d in decisions] == (["answer"] if topic == "nowhere" else ["answer", "config"])


@pytest.mark.parametrize("shards", [1, 3, 16])
def test_a_decision_of_all_shards_is_made_once(shards: int) -> None:
    assert [d["kind"] for d in said(event("broker_unregister", broker=9), shards)] == ["rejected"]
    assert [d["kind"] for d in said(event("alter_config", entity="cluster", config={"x": 1}), shards)] == [
        "answer",
        "config",
    ]
    started = said(event("controller_started", controller_id="c", controller_epoch=0), shards)
    assert [d["kind"] for d in started] == ["rejected"]
