"""Log ends are stored as they are reported, and the high watermark is decided at the next tick."""

import pytest

from controller_logic import watermark as watermark_module
from controller_logic.watermark import Derived
from state.decisions import Answer, HighWatermark, Rejected
from tests.support.world import World


@pytest.fixture
def trio() -> World:
    world = World(1, 2, 3)
    world.create("t", (1, 2, 3))
    return world


def watermark(world: World) -> int:
    return world.partition("t").high_watermark


def test_the_high_watermark_goes_back_once_under_an_unclean_leader(trio: World) -> None:
    trio.alter_isr("t", (1,))
    trio.offsets("t", b1=10)
    trio.tick()
    trio.fence(1)
    trio.publish("elect_leaders", election_type="unclean", partitions=None)
    trio.offsets("t", b2=10)
    trio.tick()
    trio.offsets("t", b2=4)
    assert trio.tick() == []
    assert watermark(trio) == 10


def test_a_last_isr_member_that_returns_with_less_lowers_the_high_watermark(trio: World) -> None:
    trio.offsets("t", b1=10, b2=10, b3=10)
    trio.tick()
    trio.alter_isr("t", (1,))
    trio.fence(1)
    trio.register(1, "second")
    trio.beat(1)
    trio.offsets("t", b1=6, b2=6)
    trio.tick()
    assert trio.one(HighWatermark).high_watermark == 6
    trio.alter_isr("t", (1, 2))
    assert trio.one(Answer).error == "NONE"
    trio.offsets("t", b1=8, b2=5)
    assert trio.tick() == []
    assert watermark(trio) == 6


def test_a_log_end_report_is_answered_if_it_asks(trio: World) -> None:
    event = {"topic": "t", "broker": 1, "leader_epoch": 0, "log_end_offset": 5, "request_id": "q"}
    trio.publish("log_end_offset", **event, partition=0)
    assert (trio.kinds, trio.error) == ("answer", "NONE")
    trio.join(4)
    trio.publish("log_end_offset", **(event | {"broker": 4}), partition=0)
    assert (trio.kinds, trio.error) == ("answer,rejected", "INVALID_REQUEST")


@pytest.mark.parametrize("epoch", [0, 2])
def test_a_log_end_of_another_leader_epoch_is_ignored(trio: World, epoch: int) -> None:
    trio.fence(3)
    trio.publish("log_end_offset", topic="t", partition=0, broker=1, leader_epoch=epoch, log_end_offset=5)
    assert trio.decisions == []
    assert trio.partition("t").log_end_offsets == ()


@pytest.mark.parametrize(("entity", "name"), [("topic", "t"), ("cluster", None)])
def test_the_high_watermark_waits_below_min_isr(entity: str, name: str | None) -> None:
    world = World(1, 2)
    world.create("t", (1, 2))
    world.publish("alter_config", entity=entity, name=name, config={"min.insync.replicas": 2})
    world.alter_isr("t", (1,))
    world.offsets("t", b1=5)
    assert world.tick() == []
    world.publish("alter_config", entity=entity, name=name, config={"min.insync.replicas": None})
    world.tick()
    assert watermark(world) == 5


def test_min_isr_is_capped_by_the_replicas() -> None:
    world = World(1, min_insync_replicas="3")
    world.create("t", (1,))
    world.offsets("t", b1=5)
    world.tick()
    assert watermark(world) == 5


def test_partitions_with_new_log_ends_are_kept_once_and_in_order(trio: World) -> None:
    trio.create("a", (1, 2), (2, 1))
    trio.offsets("t", b1=1)
    trio.offsets("a", 1, b1=1)
    trio.offsets("a", 0, b1=1)
    trio.offsets("a", 1, b2=1)
    assert trio.state.cluster.watermarks_due == (("a", 0), ("a", 1), ("t", 0))
    trio.tick()
    assert not trio.state.cluster.watermarks_due


def test_a_joiner_holds_the_high_watermark_until_it_lags(trio: World) -> None:
    trio.alter_isr("t", (1, 2))
    trio.offsets("t", b1=10, b2=10, b3=10)
    trio.tick()
    trio.offsets("t", b1=12, b2=12)
    assert trio.tick(after_ms=4_000) == []
    assert trio.state.cluster.watermarks_due == (("t", 0),)
    trio.publish("alter_config", entity="cluster", config={"replica.lag.time.max.ms": 3_999})
    trio.tick()
    assert watermark(trio) == 12
    assert not trio.state.cluster.watermarks_due


def test_a_joiner_ahead_of_the_isr_does_not_hold_the_high_watermark(trio: World) -> None:
    trio.alter_isr("t", (1, 2))
    trio.offsets("t", b1=10, b2=7, b3=10)
    trio.tick()
    assert watermark(trio) == 7
    assert not trio.state.cluster.watermarks_due


def test_a_joiner_does_not_lower_the_high_watermark_under_an_unclean_leader(trio: World) -> None:
    trio.alter_isr("t", (1,))
    trio.offsets("t", b1=10)
    trio.tick()
    trio.fence(1)
    trio.publish("elect_leaders", election_type="unclean", partitions=None)
    trio.offsets("t", b2=4, b3=4)
    trio.offsets("t", b2=6, b3=3)
    trio.tick()
    assert watermark(trio) == 6


def test_a_decreasing_high_watermark_is_withheld(trio: World, monkeypatch: pytest.MonkeyPatch) -> None:
    trio.offsets("t", b1=10, b2=7, b3=9)
    trio.tick()
    trio.is_checked = False
    monkeypatch.setattr(watermark_module, "derive_high_watermark", lambda *_: Derived(6, is_held=False))
    trio.offsets("t", b1=10)
    trio.tick()
    assert trio.one(Rejected).reason == "INVARIANT_BROKEN"
    assert (watermark(trio), trio.all(HighWatermark)) == (7, [])
