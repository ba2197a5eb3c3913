"""Brokers behind gateways are told which of the engine's settings are in force."""

from typing import Any

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from state.decisions import ConfigDecision, QuorumDecision, Rejected
from state.metadata_format import NEWEST_FORMAT, SET_AGAIN_FORMAT
from tests.support.world import World

MIN_ISR, UNCLEAN = "min.insync.replicas", "unclean.leader.election.enable"


def claim(world: World, epoch: int, **settings: Any) -> None:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    told = {"controller_id": "j", "controller_epoch": epoch}
    world.publish("controller_started", **told, settings=named)


def start(world: World, gateway: int = 100, incarnation: str = "a", **fields: Any) -> None:
    fields = {"metadata_format": NEWEST_FORMAT} | fields
    world.publish("gateway_started", gateway=gateway, incarnation=incarnation, voters=[100, 101], **fields)


def beat(world: World, gateway: int, incarnation: str = "a", **fields: Any) -> None:
    world.publish("gateway_heartbeat", gateway=gateway, incarnation=incarnation, **fields)


def told(world: World) -> dict[str, str]:
    """Return the settings in force by the last event's one config decision."""
    in_force = world.one(ConfigDecision).in_force
    assert isinstance(in_force, dict)
    return in_force


@pytest.fixture
def world() -> World:
    world = World()
    claim(world, 1, min_insync_replicas=2)
    return world


def test_the_first_gateway_hears_the_engines_settings(world: World) -> None:
    start(world)
    assert told(world) == {MIN_ISR: "2", UNCLEAN: "false"}
    assert (world.one(ConfigDecision).entity, world.one(ConfigDecision).config) == ("cluster", {})
    assert world.one(QuorumDecision).metadata_format == NEWEST_FORMAT
    start(world, 101)
    assert world.kinds == ""


def test_a_setting_is_in_force_until_it_is_removed(world: World) -> None:
    start(world)
    world.publish("alter_config", entity="cluster", config={MIN_ISR: 3, "log.retention.ms": "1000"})
    assert told(world) == {MIN_ISR: "3", UNCLEAN: "false"}
    assert world.one(ConfigDecision).config == {"log.retention.ms": "1000", MIN_ISR: "3"}
    world.publish("alter_config", entity="cluster", config={MIN_ISR: None})
    assert told(world) == {MIN_ISR: "2", UNCLEAN: "false"}
    world.publish("alter_config", entity="cluster", config={MIN_ISR: 9}, validate_only=True)
    assert world.kinds == "answer"
    world.publish("alter_config", entity="broker", name="1", config={"log.cleaner.threads": "2"})
    assert world.one(ConfigDecision).in_force is UNSET


def test_a_take_over_is_announced_only_with_other_settings(world: World) -> None:
    start(world)
    claim(world, 2, min_insync_replicas=2)
    assert world.kinds == ""
    claim(world, 3, min_insync_replicas=1, unclean_leader_election_enable=True)
    assert told(world) == {MIN_ISR: "1", UNCLEAN: "true"}
    claim(world, 4, min_insync_replicas=1, unclean_leader_election_enable=True, num_partitions=6)
    assert world.kinds == "", "brokers are not told settings that they do not act on"


def test_a_new_gateway_of_an_old_cluster_hears_the_settings_once() -> None:
    world = World()
    claim(world, 1, min_insync_replicas=2)
    start(world, metadata_format=1)
    claim(world, 2, min_insync_replicas=2)
    assert world.kinds == ""
    world.publish("alter_config", entity="cluster", config={MIN_ISR: 3})
    assert world.one(ConfigDecision).in_force is UNSET, "it could not write that down"
    start(world, incarnation="b")
    assert told(world) == {MIN_ISR: "3", UNCLEAN: "false"}
    start(world, incarnation="c")
    assert world.kinds == "quorum"


def test_a_gateway_may_name_its_format_in_a_heartbeat() -> None:
    world = World()
    claim(world, 1, min_insync_replicas=2)
    start(world, metadata_format=1)
    assert world.kinds == "quorum"
    beat(world, 100)
    assert world.kinds == ""
    beat(world, 100, metadata_format=NEWEST_FORMAT)
    assert told(world) == {MIN_ISR: "2", UNCLEAN: "false"}
    decision = world.one(QuorumDecision)
    assert (decision.voter, decision.incarnation, decision.quorum_epoch, decision.metadata_format) == (
        100,
        "a",
        2,
        NEWEST_FORMAT,
    )
    beat(world, 100, metadata_format=NEWEST_FORMAT)
    assert world.kinds == ""


def test_settings_are_announced_when_every_live_gateway_can_write_them(world: World) -> None:
    start(world, 100, metadata_format=1)
    start(world, 101, metadata_format=1)
    start(world, 100, "b")
    assert world.kinds == "quorum"
    start(world, 101, "b")
    assert told(world) == {MIN_ISR: "2", UNCLEAN: "false"}
    assert (world.one(QuorumDecision).voter, world.one(QuorumDecision).incarnation) == (100, "b")


def test_a_silent_gateway_is_not_waited_for_and_is_refused_with_its_old_format(world: World) -> None:
    start(world, 100, metadata_format=1)
    start(world, 101, metadata_format=1)
    world.tick(2_000)
    start(world, 100, "b")
    assert told(world) == {MIN_ISR: "2", UNCLEAN: "false"}
    beat(world, 101, request_id=7)
    assert world.error == "STALE_BROKER_EPOCH"
    start(world, 101, "b", metadata_format=1, request_id=8)
    assert (world.one(Rejected).field, world.error) == ("metadata_format", "UNSUPPORTED_VERSION")
    assert 101 not in world.state.cluster.gateways
    start(world, 101, "c")
    assert world.kinds == ""


def test_brokers_without_gateways_hear_no_settings_in_force(world: World) -> None:
    world.publish("alter_config", entity="cluster", config={MIN_ISR: 3})
    assert world.one(ConfigDecision).in_force is UNSET
    assert world.state.cluster.in_force == {}


def test_a_stopping_gateway_may_be_writing_until_it_is_silent(world: World) -> None:
    start(world, 100, metadata_format=1)
    start(world, 101)
    beat(world, 100, want_shutdown=True)
    assert (world.one(QuorumDecision).voter, world.kinds) == (101, "quorum")
    beat(world, 101, metadata_format=NEWEST_FORMAT)
    assert world.kinds == ""
    world.tick(1_000)
    beat(world, 101)
    world.tick(1_000)
    beat(world, 101, metadata_format=NEWEST_FORMAT)
    assert told(world) == {MIN_ISR: "2", UNCLEAN: "false"}


KEYSTORE = {"listener.name.ssl.ssl.keystore.location": "/etc/broker.p12"}


@pytest.mark.parametrize("entity", [{"entity": "broker", "name": "1"}, {"entity": "cluster"}])
def test_brokers_are_told_of_a_setting_that_is_set_again(entity: dict[str, str]) -> None:
    world = World()
    claim(world, 1)
    start(world)
    world.publish("alter_config", **entity, config=KEYSTORE)
    assert world.one(ConfigDecision).set_again is UNSET
    more = {"log.retention.ms": "1000", "log.cleaner.threads": None}
    world.publish("alter_config", **entity, config=KEYSTORE | more)
    decision = world.one(ConfigDecision)
    assert (decision.config, decision.set_again) == (KEYSTORE | {"log.retention.ms": "1000"}, tuple(KEYSTORE))
    before = world.state.cluster
    world.publish("alter_config", **entity, config=KEYSTORE)
    assert world.one(ConfigDecision).set_again == tuple(KEYSTORE)
    assert replace(world.state.cluster, seq=before.seq) == before, "nothing changed"
    for nothing in ({"config": KEYSTORE, "validate_only": True}, {"config": {"log.cleaner.threads": None}}):
        world.publish("alter_config", **entity, **nothing)
        assert world.kinds == "answer"


def test_gateways_that_cannot_write_it_tell_of_changes_only() -> None:
    world = World()
    claim(world, 1)
    start(world, metadata_format=SET_AGAIN_FORMAT - 1)
    for kinds in ("config,answer", "answer"):
        world.publish("alter_config", entity="broker", name="1", config=KEYSTORE)
        assert sorted(world.kinds.split(",")) == sorted(kinds.split(","))
