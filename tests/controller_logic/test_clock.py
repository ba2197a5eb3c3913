"""The engine's clock: whose events move it, and which times are believed."""

import msgspec
import pytest

from controller_logic.replay import Recorded, decide
from state.broker import BrokerState
from state.decisions import Rejected
from state.ids import NO_TIME
from state.policy import Policy
from state.reason import Reason
from tests.support.world import World

HOUR_MS = 3_600_000
LIMIT_MS = 60_000


@pytest.fixture
def world() -> World:
    world = World()
    claim(world, 1)
    for broker in (1, 2, 3):
        world.join(broker)
    world.create("t", (1, 2, 3))
    return world


def claim(world: World, epoch: int, **fields: object) -> None:
    fields = {"controller_id": "c"} | fields
    world.publish("controller_started", controller_epoch=epoch, **fields)


def states(world: World) -> list[BrokerState]:
    return [held.state for held in world.state.cluster.brokers.values()]


ACTIVE = [BrokerState.active] * 3


@pytest.mark.parametrize("ahead_ms", [10_000, HOUR_MS, 10**15])
def test_only_the_engine_moves_the_clock(world: World, ahead_ms: int) -> None:
    before = world.state.cluster.clock_ms
    world.now += ahead_ms
    world.register(4)
    world.now -= ahead_ms
    world.tick(500)
    assert world.state.cluster.clock_ms == before + 500
    assert states(world)[:3] == ACTIVE


def test_an_event_far_ahead_of_its_entry_time_is_refused(world: World) -> None:
    world.entered_ms = world.now
    world.now += LIMIT_MS
    world.register(4)
    assert 4 in world.state.cluster.brokers, "as far as the limit hosts may differ"
    world.now += 1
    world.register(5, request_id="r")
    rejected = world.one(Rejected)
    assert (rejected.field, rejected.reason) == ("time_ms", Reason.TIME_AHEAD)
    assert rejected.message == "it is 60001 ms ahead of the time at which it came"
    assert world.error == "INVALID_REQUEST"
    assert 5 not in world.state.cluster.brokers


def test_the_limit_is_a_setting(world: World) -> None:
    world.publish("alter_config", entity="cluster", config={"event.time.ahead.max.ms": "5"})
    world.entered_ms = world.now - 6
    assert world.beat(1)[0].reason == Reason.TIME_AHEAD
    world.entered_ms += 1
    assert world.beat(1) == []


def test_a_late_event_is_never_refused_and_counts_when_it_came(world: World) -> None:
    world.tick(8_000)
    world.now, world.entered_ms = 0, world.now
    world.beat(1)
    assert world.broker(1).last_contact_ms == 9_000


@pytest.mark.parametrize("kind", ["tick", "sessions_extended", "leader_imbalance"])
@pytest.mark.parametrize("epoch", [None, 2, 2**31 - 1])
def test_ticks_and_claims_that_no_engine_made_are_refused(world: World, kind: str, epoch: int | None) -> None:
    before = world.state.cluster.clock_ms
    world.entered_ms = world.now
    world.now += HOUR_MS
    world.publish(kind, controller_epoch=epoch, by_ms=1, checked_seq=1, counts={})
    assert (world.one(Rejected).field, world.one(Rejected).reason) == ("controller_epoch", Reason.UNKNOWN_CLAIM)
    assert world.state.cluster.clock_ms == before
    assert states(world) == ACTIVE


def test_late_events_of_the_former_engine_are_ignored(world: World) -> None:
    claim(world, 2)
    before = world.state.cluster.clock_ms
    world.now += HOUR_MS
    assert world.publish("tick", controller_epoch=1) == []
    assert world.state.cluster.clock_ms == before


def test_a_tick_moves_time_no_further_than_the_bus_did(world: World) -> None:
    world.entered_ms = 5_000_000
    world.tick(100)
    world.now += 10**15
    world.entered_ms += 100
    world.publish("tick")
    assert (world.one(Rejected).field, world.one(Rejected).reason) == ("time_ms", Reason.TIME_AHEAD)
    world.now -= 10**15
    assert world.tick(100) == []
    assert states(world) == ACTIVE
    # The engine was stopped for an hour, and the bus's clock went on.
    world.entered_ms += HOUR_MS
    world.tick(HOUR_MS)
    assert states(world) == [BrokerState.fenced] * 3


def test_ticks_continue_when_the_clock_of_the_bus_is_set_back(world: World) -> None:
    world.entered_ms = 5_000_000
    world.tick(100)
    world.entered_ms -= HOUR_MS
    for _ in range(90):
        world.tick(100)
    assert states(world) == [BrokerState.fenced] * 3


def test_a_claim_slightly_behind_continues_from_the_clock(world: World) -> None:
    world.tick(LIMIT_MS)
    world.now -= LIMIT_MS
    claim(world, 2)
    assert (world.state.cluster.controller_epoch, world.state.cluster.clock_ms) == (2, 61_000)


def test_a_claim_resets_a_clock_that_was_far_ahead(world: World) -> None:
    """Before the first claim of an engine, any event drives the clock."""
    world.publish("controller_started", controller_id="by hand", controller_epoch=2, settings=None)
    world.offsets("t", b1=10, b2=10, b3=10)
    world.now += 10**15
    for broker in (1, 2, 3):
        world.beat(broker)
    world.offsets("t", b1=20, b2=20, b3=20)
    world.publish("gateway_started", gateway=3000, incarnation="g", voters=[3000])
    world.now -= 10**15
    world.tick(20_000)
    assert states(world) == ACTIVE, "nobody is ever fenced again"
    claim(world, 3)
    assert world.state.cluster.clock_ms == 21_000
    assert {held.last_contact_ms for held in world.state.cluster.brokers.values()} == {21_000}
    assert states(world) == ACTIVE
    world.tick(8_999)
    assert states(world) == ACTIVE
    world.tick(1)
    assert states(world) == [BrokerState.fenced] * 3


def test_a_reset_clock_leaves_fenced_brokers_the_sessions_that_they_had(world: World) -> None:
    behind = {"behind_gateway": True}
    world.publish("gateway_started", gateway=100, incarnation="first", voters=[100])
    world.register(4, **behind, log_dirs=["four"])
    world.tick(5 * HOUR_MS)
    world.register(5, **behind, log_dirs=["five"])
    world.beat(5, fence=True)
    world.now -= 5 * HOUR_MS
    claim(world, 2)
    # Broker 4 was never heard, so its id is free. Broker 5 was heard just now.
    assert [world.broker(broker).last_contact_ms for broker in (4, 5)] == [NO_TIME, world.now]
    for broker, error in ((4, "NONE"), (5, "DUPLICATE_BROKER_REGISTRATION")):
        world.register(broker, **behind, incarnation="second", log_dirs=["another"])
        assert world.error == error


@pytest.mark.parametrize("is_later", [True, False])
def test_a_reset_clock_leaves_no_time_in_the_future_at_which_a_gateway_was_heard(world: World, is_later: bool) -> None:
    world.publish("gateway_started", gateway=100, incarnation="first", voters=[100])
    world.now += HOUR_MS
    claim_ms = world.now
    world.tick(5 * HOUR_MS)
    if is_later:
        world.publish("gateway_heartbeat", gateway=100, incarnation="first")
    world.now = claim_ms
    claim(world, 2)
    assert world.state.cluster.quorum.heard_ms == claim_ms


def test_a_report_from_the_future_does_not_count_as_caught_up(world: World) -> None:
    world.publish("controller_started", controller_id="by hand", controller_epoch=2, settings=None)
    world.alter_isr("t", (1, 2))
    world.now += 10**15
    world.offsets("t", b1=10, b2=10, b3=10)
    world.now -= 10**15
    claim(world, 3)
    world.offsets("t", b1=20, b2=20)
    world.tick(100)
    assert world.partition("t").high_watermark == 20, "nobody waits for a follower that was last heard in times to come"
    world.offsets("t", b3=12)
    assert world.partition("t").lags[2].caught_up_time_ms == NO_TIME


@pytest.mark.parametrize("shards", [1, 4])
@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_whose_events_move_the_clock_is_independent_of_batches(shards: int, size: int) -> None:
    events = [
        ("controller_started", 1_000, {"controller_id": "c", "controller_epoch": 1}),
        ("broker_register", 90_000, {"broker": 1, "incarnation": "a"}),
        ("controller_started", 1_100, {"controller_id": "c", "controller_epoch": 2, "settings": {}}),
        ("create_topic", 10**12, {"topic": "t", "assignment": {"0": [1]}}),
        ("tick", 1_200, {"controller_epoch": 2}),
        ("delete_topic", 10**12, {"topic": "other"}),
        ("controller_started", 1_250, {"controller_id": "c", "controller_epoch": 3}),
        ("tick", 1_300, {"request_id": 1}),
        ("delete_topic", 1_350, {"topic": "other"}),
    ]
    log: list[Recorded] = []
    for seq, (kind, time_ms, fields) in enumerate(events, start=1):
        log.append((seq, msgspec.json.encode({"kind": kind, "time_ms": time_ms, **fields}), None, None))
    decided = decide(log, Policy(), shards=shards, batch_sizes=(size,))
    times = {seq: msgspec.json.decode(body)["time_ms"] for seq, _, body in decided.decisions}
    assert times == {2: 90_000, 4: 1_100, 6: 1_200, 8: 1_300, 9: 1_350}
    assert decided.view()["time_ms"] == 1_350
