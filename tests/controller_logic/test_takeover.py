"""A job takes over."""

import pytest

from state.decisions import Answer, Rejected
from tests.support.world import World, claimed

UNCLEAN = "unclean.leader.election.enable"


@pytest.fixture
def world() -> World:
    world = World(1, 2)
    world.create("t", (1, 2))
    world.publish("controller_started", controller_id="a", controller_epoch=3)
    return world


def test_a_take_over_decides_nothing_and_raises_the_epoch(world: World) -> None:
    assert world.decisions == []
    world.beat(1, request_id=1)
    assert world.one(Answer).controller_epoch == 3
    assert world.state.cluster.controller_id == "a"


@pytest.mark.parametrize("epoch", [2, 3])
def test_an_epoch_that_is_not_newer_is_rejected(world: World, epoch: int) -> None:
    world.publish("controller_started", controller_id="b", controller_epoch=epoch, request_id=1)
    assert world.one(Rejected).field == "controller_epoch"
    assert world.error == "STALE_CONTROLLER_EPOCH"
    assert (world.state.cluster.controller_id, world.state.cluster.controller_epoch) == ("a", 3)


def test_live_brokers_get_a_whole_session() -> None:
    world = claimed(1, 2)
    world.now += 20_000
    world.claim()
    assert world.tick(8_999) == []
    assert world.tick(1) != []


def test_claimed_settings_override_the_base_and_not_dynamic_ones(world: World) -> None:
    world.publish("controller_started", controller_id="b", controller_epoch=4, settings={"num.partitions": 3})
    world.publish("create_topic", topic="u")
    assert len(world.one(Answer).assignment) == 3  # type: ignore[arg-type]
    world.publish("alter_config", entity="cluster", config={"num.partitions": 4})
    world.publish("create_topic", topic="v")
    assert len(world.one(Answer).assignment) == 4  # type: ignore[arg-type]
    world.overrides["num.partitions"] = "5"
    world.publish("create_topic", topic="w")
    assert len(world.one(Answer).assignment) == 5  # type: ignore[arg-type]


def test_settings_of_an_earlier_job_are_dropped(world: World) -> None:
    world.publish("controller_started", controller_id="b", controller_epoch=4, settings={"num.partitions": 3})
    world.publish("controller_started", controller_id="c", controller_epoch=5)
    world.publish("create_topic", topic="u")
    assert len(world.one(Answer).assignment) == 1  # type: ignore[arg-type]


def test_an_invalid_setting_is_named_and_ignored(world: World) -> None:
    settings = {"num.partitions": "many", UNCLEAN: True, "no.rule.reads.it": 1, "min.insync.replicas": None}
    settings |= {"replica.lag.time.max.ms": "long"}
    world.publish("controller_started", controller_id="b", controller_epoch=4, settings=settings)
    assert world.one(Rejected).field == "settings.num.partitions, settings.replica.lag.time.max.ms"
    assert world.state.cluster.settings == {UNCLEAN: "true"}
    assert world.state.cluster.controller_epoch == 4


def test_a_take_over_elects_leaders_that_its_settings_allow(world: World) -> None:
    world.alter_isr("t", (1,))
    world.fence(1)
    assert world.line("t") == "Offline leader=none epoch=1/2 isr=1"
    world.publish("controller_started", controller_id="b", controller_epoch=4, settings={UNCLEAN: True})
    assert world.line("t") == "Online leader=2 epoch=2/3 isr=2 recovering"


def test_a_claim_unknown_to_the_bus_is_refused(world: World) -> None:
    world.is_claim = False
    world.publish("controller_started", controller_id="x", controller_epoch=2**31 - 1, request_id=1)
    assert (world.one(Rejected).field, world.one(Rejected).reason) == ("controller_epoch", "UNKNOWN_CLAIM")
    assert world.error == "INVALID_REQUEST"
    assert (world.state.cluster.controller_id, world.state.cluster.controller_epoch) == ("a", 3)


def test_the_bus_claim_counts_after_a_forged_epoch(world: World) -> None:
    world.publish("controller_started", controller_id="x", controller_epoch=2**31 - 1)
    world.is_claim = True
    world.publish("controller_started", controller_id="b", controller_epoch=4)
    assert (world.state.cluster.controller_id, world.state.cluster.controller_epoch) == ("b", 4)
    world.publish("controller_started", controller_id="c", controller_epoch=5)
    assert world.state.cluster.controller_epoch == 5
