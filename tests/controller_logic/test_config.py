"""Dynamic settings."""

from typing import Any

import pytest

from state.decisions import Answer, ConfigDecision
from state.policy import NAMES, misspelt
from tests.support.world import World

UNCLEAN = "unclean.leader.election.enable"
MIN_ISR = "min.insync.replicas"


@pytest.fixture
def leaderless() -> World:
    """Topics t and u on 1 and 2; 1, their one in-sync replica, is gone."""
    world = World(1, 2)
    for topic in ("t", "u"):
        world.create(topic, (1, 2))
        world.alter_isr(topic, (1,))
    world.fence(1)
    return world


def alter(world: World, entity: str, name: str | None, **config: Any) -> None:
    world.publish("alter_config", entity=entity, name=name, config=config)


def test_null_removes_a_setting(leaderless: World) -> None:
    alter(leaderless, "topic", "t", **{MIN_ISR: 2, "retention.ms": 5})
    alter(leaderless, "topic", "t", **{MIN_ISR: None})
    assert leaderless.one(ConfigDecision).config == {"retention.ms": "5"}


def test_a_request_that_changes_nothing_is_only_answered(leaderless: World) -> None:
    alter(leaderless, "topic", "t", **{MIN_ISR: 2})
    alter(leaderless, "topic", "t", **{MIN_ISR: "2"})
    assert leaderless.kinds == "answer"


def test_a_new_min_isr_takes_effect_at_once(leaderless: World) -> None:
    assert leaderless.state.cluster.totals.under_min_isr == 0
    alter(leaderless, "topic", "t", **{MIN_ISR: 2})
    assert leaderless.state.cluster.totals.under_min_isr == 1
    alter(leaderless, "cluster", None, **{MIN_ISR: 2})
    assert leaderless.state.cluster.totals.under_min_isr == 2
    alter(leaderless, "cluster", None, **{MIN_ISR: None})
    assert leaderless.state.cluster.totals.under_min_isr == 1


def test_a_new_min_isr_counts_no_topic_that_is_being_deleted(leaderless: World) -> None:
    leaderless.publish("delete_topic", topic="t")
    assert leaderless.state.cluster.totals.topics == 1
    alter(leaderless, "cluster", None, **{MIN_ISR: 2})
    assert leaderless.state.cluster.totals.under_min_isr == 1


def test_an_unregistered_broker_may_have_settings(leaderless: World) -> None:
    alter(leaderless, "broker", "77", **{"log.retention.ms": 5})
    assert (leaderless.kinds, leaderless.one(ConfigDecision).name) == ("answer,config", "77")
    assert leaderless.state.cluster.broker_config == {"77": {"log.retention.ms": "5"}}
    alter(leaderless, "broker", "77", **{"log.retention.ms": None})
    assert leaderless.state.cluster.broker_config == {}


@pytest.mark.parametrize(
    ("entity", "name", "config", "error"),
    [
        ("cluster", None, {MIN_ISR: "two"}, "INVALID_CONFIG"),
        ("cluster", None, {"broker.session.timeout.ms": 0}, "INVALID_CONFIG"),
        ("topic", "t", {UNCLEAN: "perhaps"}, "INVALID_CONFIG"),
        ("topic", "nowhere", {MIN_ISR: 1}, "UNKNOWN_TOPIC_OR_PARTITION"),
        ("topic", None, {MIN_ISR: 1}, "INVALID_REQUEST"),
        ("broker", None, {"a": 1}, "INVALID_REQUEST"),
        ("broker", "one", {"a": 1}, "INVALID_REQUEST"),
        ("broker", "\u0661", {"a": 1}, "INVALID_REQUEST"),
    ],
)
def test_settings_with_an_invalid_one_are_refused_as_a_whole(
    leaderless: World, entity: str, name: str | None, config: dict[str, Any], error: str
) -> None:
    before = (leaderless.state.cluster.config, leaderless.state.topics)
    alter(leaderless, entity, name, good="1", **config)
    assert (leaderless.kinds, leaderless.error) == ("answer", error)
    assert (leaderless.state.cluster.config, leaderless.state.topics) == before


def test_a_cluster_setting_on_a_topic_is_left_to_brokers(leaderless: World) -> None:
    leaderless.claim()
    for name in ("broker.session.timeout.ms", "num.partition"):
        alter(leaderless, "topic", "t", **{name: "never"})
        assert leaderless.one(Answer).error == "NONE"


@pytest.mark.parametrize(("entity", "name"), [("cluster", None), ("topic", "t"), ("broker", "1")])
def test_a_validated_setting_is_not_set(entity: str, name: str | None) -> None:
    world = World(1)
    world.create("t", (1,))
    asked = {"entity": entity, "name": name, "config": {"min.insync.replicas": 2}}
    world.publish("alter_config", **asked, validate_only=True)
    assert (world.kinds, world.error) == ("answer", "NONE")
    world.publish("alter_config", **asked)
    assert world.kinds == "answer,config"


@pytest.mark.parametrize("name", ["-1", "1.0", "2147483648", "9" * 200, "\u0661", ""])
def test_a_broker_setting_needs_a_valid_broker_id(name: str) -> None:
    world = World(1)
    alter(world, "broker", name, **{"log.retention.ms": 5})
    assert (world.error, world.state.cluster.broker_config) == ("INVALID_REQUEST", {})


def test_leading_zeros_name_the_same_broker() -> None:
    world = World(1)
    alter(world, "broker", "7", **{"log.retention.ms": 5})
    alter(world, "broker", "007", **{"log.retention.ms": 6})
    assert world.one(ConfigDecision).name == "7"
    assert world.state.cluster.broker_config == {"7": {"log.retention.ms": "6"}}
    alter(world, "broker", "00", **{"log.retention.ms": 7})
    assert sorted(world.state.cluster.broker_config) == ["0", "7"]


@pytest.mark.parametrize("entity", ["cluster", "topic"])
def test_a_setting_is_written_as_brokers_read_it(entity: str) -> None:
    world = World(1)
    world.create("t", (1,))
    world.publish("controller_started", controller_id="c", controller_epoch=1)
    alter(world, entity, "t" if entity == "topic" else None, **{"min.insync.replicas": 1.0})
    assert world.error == "INVALID_CONFIG"


@pytest.fixture
def claimed() -> World:
    """A cluster whose engine ticks every 500 ms."""
    world = World(1)
    world.create("t", (1,))
    settings = {"tick.idle.interval.ms": "500", "broker.session.timeout.ms": "9000"}
    claim = {"controller_id": "c", "controller_epoch": 1, "settings": settings}
    world.publish("controller_started", **claim)
    return world


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (
            {"broker.session.timeout.ms": 1},
            "tick.idle.interval.ms is 500, and broker.session.timeout.ms is 1: expected",
        ),
        ({"broker.session.timeout.ms": 500}, "expected tick.idle.interval.ms < broker.session.timeout.ms"),
        ({"broker.heartbeat.interval.ms": 9_000}, "expected broker.heartbeat.interval.ms < broker.session.timeout.ms"),
        ({"controller.quorum.fetch.timeout.ms": 500}, "expected tick.idle.interval.ms < controller.quorum.fetch."),
        ({"controller.quorum.fetch.timeout.ms": 400}, "controller.quorum.fetch.timeout.ms is 400: expected more than"),
    ],
)
def test_settings_that_cannot_work_together_are_refused_as_at_a_start(
    claimed: World, config: dict[str, int], said: str
) -> None:
    before = claimed.state.cluster.config
    alter(claimed, "cluster", None, **config)
    answer = claimed.one(Answer)
    assert (answer.error, claimed.kinds) == ("INVALID_CONFIG", "answer")
    assert said in (answer.message or "")
    assert claimed.state.cluster.config == before


def test_a_setting_that_fits_is_set_and_an_older_misfit_stops_no_other(claimed: World) -> None:
    alter(claimed, "cluster", None, **{"broker.session.timeout.ms": 501})
    assert claimed.error == "NONE"
    claimed.publish("controller_started", controller_id="c", controller_epoch=2, settings={})
    alter(claimed, "cluster", None, **{"broker.session.timeout.ms": 1})
    assert claimed.error == "NONE", "this claim brought no tick interval"
    settings = {"tick.idle.interval.ms": 500}
    claim = {"controller_id": "c", "controller_epoch": 3, "settings": settings}
    claimed.publish("controller_started", **claim)
    alter(claimed, "cluster", None, **{MIN_ISR: 2})
    assert claimed.error == "NONE"


def test_settings_must_fit_those_that_were_set_before(claimed: World) -> None:
    alter(claimed, "cluster", None, **{"broker.session.timeout.ms": 1_500})
    # A gateway's brokers have an interval of their own, so the default of the one that is not named may be longer.
    assert claimed.error == "NONE"
    alter(claimed, "cluster", None, **{"broker.heartbeat.interval.ms": 1_500})
    assert claimed.error == "INVALID_CONFIG"
    alter(claimed, "cluster", None, **{"broker.heartbeat.interval.ms": 1_000})
    assert claimed.error == "NONE"
    alter(claimed, "cluster", None, **{"broker.heartbeat.interval.ms": None})
    assert claimed.error == "NONE", "a setting that is removed is not named"


@pytest.mark.parametrize(("entity", "name"), [("cluster", None), ("topic", "t"), ("broker", "1")])
def test_settings_are_read_and_told_in_order_of_name(claimed: World, entity: str, name: str | None) -> None:
    alter(claimed, entity, name, c=3, a=True)
    alter(claimed, entity, name, d=None, b=False)
    assert list(claimed.one(ConfigDecision).config.items()) == [("a", "true"), ("b", "false"), ("c", "3")]
    alter(claimed, entity, name, **{"unclean.leader.election.enabl": True, "min.insync.replica": 2})
    assert "min.insync" in (claimed.one(Answer).message or "")


@pytest.mark.parametrize("entity", ["cluster", "topic", "broker"])
def test_a_misspelt_setting_is_refused(claimed: World, entity: str) -> None:
    name = {"cluster": None, "topic": "t", "broker": "1"}[entity]
    alter(claimed, entity, name, **{"min.insync.replica": 2})
    answer = claimed.one(Answer)
    assert (answer.error, answer.message) == (
        "INVALID_CONFIG",
        "unknown setting 'min.insync.replica'; did you mean 'min.insync.replicas'?",
    )
    alter(claimed, entity, name, **{"min.insync.replica": None})
    assert claimed.error == "NONE"


def test_a_topic_is_not_created_with_a_misspelt_setting(claimed: World) -> None:
    claimed.publish("create_topic", topic="u", assignment={"0": [1]}, config={"min.insync.replica": 1})
    assert claimed.error == "INVALID_CONFIG"


# Those of Kafka's settings whose names are nearest to the rules' settings.
OF_KAFKA = (
    "controller.quorum.election.timeout.ms",
    "controller.quorum.request.timeout.ms",
    "controller.quorum.fetch.max.bytes",
    "zookeeper.session.timeout.ms",
    "group.max.session.timeout.ms",
    "group.consumer.session.timeout.ms",
    "group.consumer.heartbeat.interval.ms",
    "unclean.leader.election.interval.ms",
    "offsets.topic.num.partitions",
    "offsets.topic.replication.factor",
    "transaction.state.log.min.isr",
    "replica.fetch.wait.max.ms",
    "metadata.max.retention.ms",
    "controlled.shutdown.max.retries",
    "log.segment.delete.delay.ms",
    "max.compaction.lag.ms",
    "segment.jitter.ms",
)


def test_no_setting_of_kafka_counts_as_misspelt() -> None:
    assert {name: meant for name in OF_KAFKA if (meant := misspelt(name, NAMES))} == {}
