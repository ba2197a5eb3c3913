"""Leaders go back to the preferred replicas."""

from typing import Any

import msgspec
import pytest

from controller_logic import balance
from controller_logic.replay import decide
from state.decisions import Imbalance, LeaderAndIsr
from state.policy import Policy
from tests.support.world import World

INTERVAL_MS = 300_000


@pytest.fixture
def world() -> World:
    """Topics t and u on 1, 2; broker 1 was away, so that 2 leads all."""
    return unbalanced(World(1, 2))


def unbalanced(world: World) -> World:
    world.tick()
    world.create("t", (1, 2), (2, 1))
    world.create("u", (1, 2))
    world.fence(1)
    world.beat(1)
    for topic in ("t", "u"):
        world.alter_isr(topic, (2, 1))
    return world


def check(world: World, after_ms: int = INTERVAL_MS) -> dict[int, tuple[int, int]]:
    """Advance time with all brokers alive; return the counts of that tick."""
    world.now += after_ms
    for broker, held in world.state.cluster.brokers.items():
        if held.is_live:
            world.beat(broker)
    world.publish("tick")
    found = world.all(Imbalance)
    return found[0].counts if found else {}


def publish_back(world: World, **fields: Any) -> None:
    event = msgspec.to_builtins(balance.event_of(world.one(Imbalance)))
    world.publish(**(event | fields))


def test_a_check_counts_for_each_preferred_broker(world: World) -> None:
    assert check(world) == {1: (2, 2), 2: (0, 1)}
    assert world.one(Imbalance).reason == "LEADER_BALANCE"
    assert world.all(LeaderAndIsr) == []


def test_checks_come_once_an_interval(world: World) -> None:
    assert check(world, INTERVAL_MS - 9_001) == {}
    assert check(world, 9_001) != {}
    assert check(world, INTERVAL_MS - 1) == {}
    assert check(world, 1) != {}


def test_an_interval_begins_with_the_first_tick() -> None:
    world = World(1, 2)
    world.create("t", (1, 2))
    world.publish("controlled_shutdown", broker=1, broker_epoch=world.broker(1).broker_epoch)
    assert world.tick() == []
    assert check(world, INTERVAL_MS - 1) == {}
    assert check(world, 1) == {1: (1, 1)}


def test_a_new_controller_checks_the_balance_soon(world: World) -> None:
    world.publish("controller_started", controller_id="c", controller_epoch=1)
    assert check(world, balance.FIRST_CHECK_MS - 1) == {}
    assert check(world, 1) != {}


def test_a_count_that_comes_back_moves_leaders(world: World) -> None:
    check(world)
    publish_back(world)
    assert world.state.cluster.imbalance_seq == -1
    assert [(d.topic, d.partition, d.leader, d.isr, d.reason) for d in world.all(LeaderAndIsr)] == [
        ("t", 0, 1, (2, 1), "LEADER_BALANCE"),
        ("u", 0, 1, (2, 1), "LEADER_BALANCE"),
    ]
    assert world.line("t") == "Online leader=1 epoch=2/3 isr=2,1"
    assert check(world) == {}, "a cluster in balance is not worth a word"


def test_a_count_takes_effect_once(world: World) -> None:
    check(world)
    event = msgspec.to_builtins(balance.event_of(world.one(Imbalance)))
    world.publish(**event)
    world.fence(1)
    world.beat(1)
    for topic in ("t", "u"):
        world.alter_isr(topic, (2, 1))
    world.publish(**event)
    assert world.decisions == []


def test_a_count_of_an_older_check_or_controller_is_ignored(world: World) -> None:
    check(world)
    first = msgspec.to_builtins(balance.event_of(world.one(Imbalance)))
    check(world)
    world.publish(**first)
    assert world.decisions == []
    second = first | {"checked_seq": world.state.cluster.imbalance_seq, "request_id": 1}
    world.publish("controller_started", controller_id="c", controller_epoch=1)
    world.publish(**second)
    assert (world.kinds, world.error) == ("answer", "STALE_CONTROLLER_EPOCH")


@pytest.mark.parametrize(("counts", "moves"), [((1, 10), 0), ((2, 10), 2), ((0, 0), 0), ((0, 5), 0)])
def test_only_brokers_over_the_allowed_imbalance_are_balanced(
    world: World, counts: tuple[int, int], moves: int
) -> None:
    check(world)
    publish_back(world, counts={"1": counts})
    assert len(world.all(LeaderAndIsr)) == moves


def test_only_partitions_of_an_imbalanced_broker_move(world: World) -> None:
    world.create("v", (2, 1))
    where = {"topic": "v", "partition": 0, "broker": 2, "broker_epoch": world.broker(2).broker_epoch}
    for epoch, outcome in ((0, "offline"), (1, "follower")):
        world.publish("replica_report", **where, leader_epoch=epoch, outcome=outcome)
    world.alter_isr("v", (1, 2))
    assert check(world) == {1: (2, 2), 2: (1, 2)}
    publish_back(world, counts={"1": (2, 2), "2": (0, 2)})
    assert [d.topic for d in world.all(LeaderAndIsr)] == ["t", "u"]


def test_only_partitions_with_a_ready_preferred_replica_move(world: World) -> None:
    world.alter_isr("t", (2,))
    check(world)
    publish_back(world)
    assert [d.topic for d in world.all(LeaderAndIsr)] == ["u"]
    world.fence(1)
    check(world)
    publish_back(world)
    assert world.decisions == []


def test_partitions_in_a_reassignment_or_deletion_are_not_balanced(world: World) -> None:
    world.join(3)
    world.publish("alter_reassignment", topic="t", partition=0, replicas=[1, 3])
    world.publish("delete_topic", topic="u")
    assert check(world) == {}
    world.publish("alter_reassignment", topic="t", partition=0, replicas=None)
    assert check(world) == {1: (1, 1), 2: (0, 1)}


def test_balancing_can_be_disabled(world: World) -> None:
    check(world)
    event = msgspec.to_builtins(balance.event_of(world.one(Imbalance)))
    world.overrides["auto.leader.rebalance.enable"] = "false"
    world.publish(**event)
    assert world.decisions == []
    assert check(world) == {}


def test_a_round_is_bounded_and_the_next_one_continues(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(balance, "MOVES_PER_BROKER", 50)
    world = World(1, 2)
    world.is_checked = False
    world.tick()
    world.create("t", *[(1, 2)] * 400)
    world.fence(1)
    world.beat(1)
    for number in range(400):
        partition = world.partition("t", number)
        epochs = {"leader_epoch": partition.leader_epoch, "partition_epoch": partition.partition_epoch}
        world.alter_isr("t", (2, 1), partition=number, broker=2, **epochs)
    world.is_checked = True
    moved = []
    for _ in range(3):
        check(world)
        publish_back(world)
        moved.append(len(world.all(LeaderAndIsr)))
    assert sum(moved) + len([p for p in range(400) if world.partition("t", p).leader == 2]) == 400
    assert all(25 < count < 80 for count in moved), moved


@pytest.mark.parametrize("shards", [1, 3, 16])
def test_shards_count_and_move_as_one(world: World, shards: int) -> None:
    check(world)
    publish_back(world)
    check(world)
    entries = list(enumerate(world.log, start=1))
    whole = decide(entries, Policy())
    cut = decide(entries, Policy(), shards=shards, batch_sizes=(3, 1))
    assert cut.decisions == whole.decisions
    assert cut.view() == whole.view()
    assert sum(b'"imbalance"' in body for _, _, body in whole.decisions) == 1
