"""An idle metadata log gets a record now and then: when, and when not."""

import json
from collections.abc import Iterator

import pytest

from controller_logic.replay import decide
from state.decisions import NoOp
from state.policy import Policy
from state.reason import Reason
from tests.support.world import World

NAME = "metadata.max.idle.interval.ms"


def claim(world: World, epoch: int = 1, **settings: int) -> None:
    told = {"controller_id": "j", "controller_epoch": epoch}
    world.publish("controller_started", **told, settings={NAME: 5_000} if not settings else settings["settings"])


def start(world: World, incarnation: str = "a", *, is_kraft: bool = True) -> None:
    told = {"incarnation": incarnation, "voters": [100], "is_kraft": is_kraft}
    world.publish("gateway_started", gateway=100, **told)


def beat(world: World, incarnation: str = "a") -> None:
    world.publish("gateway_heartbeat", gateway=100, incarnation=incarnation)


def no_ops(world: World, for_ms: int, incarnation: str = "a") -> Iterator[int]:
    """Tick as an idle engine with a live gateway; return the times of the no-op decisions."""
    for _ in range(for_ms // 500):
        beat(world, incarnation)
        world.tick(500)
        assert {decision.reason for decision in world.all(NoOp)} <= {Reason.MAX_IDLE_INTERVAL}
        yield from [decision.time_ms for decision in world.all(NoOp)]


@pytest.fixture
def world() -> World:
    world = World()
    claim(world)
    return world


def test_a_no_op_comes_in_every_interval(world: World) -> None:
    start(world)
    began = world.now
    assert list(no_ops(world, 21_000)) == [began + 5_000, began + 10_000, began + 15_000, began + 20_000]


def test_other_decisions_do_not_postpone_a_no_op(world: World) -> None:
    start(world)
    began = world.now
    list(no_ops(world, 4_500))
    world.publish("create_topic", topic="t", assignment={"0": [1]})
    assert list(no_ops(world, 1_000)) == [began + 5_000]


def test_without_a_quorum_leader_there_is_no_no_op(world: World) -> None:
    for _ in range(20):
        world.tick(500)
        assert world.all(NoOp) == []
    start(world)
    for _ in range(20):
        world.tick(500)
        assert world.all(NoOp) == [], "nobody heard the gateway, so no broker would hear of it"
    assert len(list(no_ops(world, 5_000))) == 1


def test_without_a_metadata_log_there_is_no_no_op(world: World) -> None:
    start(world, is_kraft=False)
    assert list(no_ops(world, 10_000)) == []
    start(world, "b")
    assert len(list(no_ops(world, 10_000, "b"))) == 2


@pytest.mark.parametrize("settings", [{NAME: 0}, {}, {NAME: -1}])
def test_without_an_interval_in_the_claim_there_is_no_no_op(settings: dict[str, int]) -> None:
    world = World()
    claim(world, settings=settings)
    assert world.policy.metadata_max_idle_interval_ms > 0, "what the reader of a log is set to does not count"
    start(world)
    assert list(no_ops(world, 10_000)) == []


def test_the_interval_can_be_changed_at_run_time(world: World) -> None:
    start(world)
    world.publish("alter_config", entity="cluster", config={NAME: 500})
    assert len(list(no_ops(world, 5_000))) == 10
    world.publish("alter_config", entity="cluster", config={NAME: 0})
    assert list(no_ops(world, 10_000)) == []


def test_a_take_over_does_not_restart_the_interval(world: World) -> None:
    start(world)
    began = world.now
    list(no_ops(world, 3_000))
    claim(world, 2)
    assert list(no_ops(world, 3_000)) == [began + 5_000]


def test_after_the_clock_was_set_back_no_no_op_is_repeated(world: World) -> None:
    start(world)
    world.now += 3_600_000
    assert list(no_ops(world, 1_000)) == [world.now - 500]
    world.now -= 3_600_000
    claim(world, 2)
    assert list(no_ops(world, 10_000)) == [], "one of the same bytes might be in the log"
    start(world, "b")
    began = world.now
    assert list(no_ops(world, 5_000, "b")) == [began + 5_000], "a batch bears the quorum's epoch too"


def test_shards_and_batches_do_not_change_no_ops(world: World) -> None:
    start(world)
    for number in range(30):
        if number % 7 == 0:
            world.publish("create_topic", topic=f"t{number}", partitions=1, replication_factor=1)
        list(no_ops(world, 1_500))
    entries = list(enumerate(world.log, 1))
    whole = decide(entries, Policy()).decisions
    assert [json.loads(body)["kind"] for _, _, body in whole].count("no_op") == 9
    assert decide(entries, Policy(), shards=5, batch_sizes=(1, 7, 3)).decisions == whole
