"""Brokers behind gateways are told which of the engine's settings are in force."""

from typing import Any

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from state.decisions import ConfigDecision
from tests.support.world import World

MIN_ISR, UNCLEAN = "min.insync.replicas", "unclean.leader.election.enable"


def claim(world: World, epoch: int, **settings: Any) -> None:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    told = {"controller_id": "j", "controller_epoch": epoch}
    world.publish("controller_started", **told, settings=named)


def start(world: World, gateway: int = 100, incarnation: str = "a", **fields: Any) -> None:
    fields = {"is_kraft": True} | fields
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


def test_brokers_without_gateways_hear_no_settings_in_force(world: World) -> None:
    world.publish("alter_config", entity="cluster", config={MIN_ISR: 3})
    assert world.one(ConfigDecision).in_force is UNSET
    assert world.state.cluster.in_force == {}


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


def test_without_a_metadata_log_only_changes_are_told() -> None:
    world = World()
    claim(world, 1)
    start(world, is_kraft=False)
    for kinds in ("config,answer", "answer"):
        world.publish("alter_config", entity="broker", name="1", config=KEYSTORE)
        assert sorted(world.kinds.split(",")) == sorted(kinds.split(","))
