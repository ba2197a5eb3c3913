"""Which gateway leads, by the brokers that gateways hear: what no story shows."""

import pytest

from state.decisions import QuorumDecision
from state.ids import NO_TIME
from tests.support.world import World, claimed

VOTERS = [100, 101, 102]
FIND_MS = 6_000


def beats(world: World, gateway: int, *hears: int) -> None:
    world.publish("gateway_heartbeat", gateway=gateway, incarnation="i", hears=hears)


def all_beat(world: World, *by_gateway: tuple[int, ...]) -> None:
    """Let the gateways say which brokers they hear."""
    for gateway, hears in zip(VOTERS, by_gateway, strict=False):
        beats(world, gateway, *hears)


@pytest.fixture
def world() -> World:
    """Three gateways, the first of which leads and may be judged, and three brokers behind them."""
    world = claimed()
    for gateway in VOTERS:
        world.publish("gateway_started", gateway=gateway, incarnation="i", voters=VOTERS)
    for broker in (1, 2, 3):
        world.join(broker, behind_gateway=True)
    world.tick(FIND_MS)
    for broker in (1, 2, 3):
        world.beat(broker)
    all_beat(world, (1, 2, 3), (), ())
    return world


def leader(world: World) -> int:
    return world.state.cluster.quorum.voter


def test_the_one_that_hears_most_follows_a_silent_leader(world: World) -> None:
    world.tick(1_999)
    beats(world, 101, 1)
    beats(world, 102, 1, 2)
    world.tick(1)
    assert (leader(world), world.one(QuorumDecision).reason) == (102, "GATEWAY_SILENT")


def test_the_lowest_of_equals_leads(world: World) -> None:
    all_beat(world, (3,), (1, 2), (1, 2))
    world.tick()
    world.tick(1_000)
    assert (leader(world), world.one(QuorumDecision).reason) == (101, "GATEWAY_UNHEARD")


def test_strangers_do_not_count(world: World) -> None:
    all_beat(world, (1,), (7, 8, 9), (1, 2))
    world.tick()
    world.tick(1_000)
    assert leader(world) == 102


def test_while_no_broker_is_registered_all_count() -> None:
    world = claimed()
    for gateway in VOTERS:
        world.publish("gateway_started", gateway=gateway, incarnation="i", voters=VOTERS)
    world.tick(FIND_MS)
    all_beat(world, (), (1,))
    world.tick()
    world.tick(1_000)
    assert leader(world) == 101


def test_another_must_hear_more_all_the_time(world: World) -> None:
    for hears in ((1, 2), (1,), (1, 2)):
        all_beat(world, (3,), hears)
        world.tick()
        world.tick(999)
        assert leader(world) == 100
    world.tick(1)
    assert leader(world) == 101


def test_after_a_time_without_another_gateway_the_wait_begins_again(world: World) -> None:
    all_beat(world, (3,), (1, 2))
    world.tick()
    for gateway in (101, 102):
        world.publish("gateway_heartbeat", gateway=gateway, incarnation="i", want_shutdown=True)
    world.tick(999)
    world.publish("gateway_started", gateway=101, incarnation="j", voters=VOTERS)
    world.publish("gateway_heartbeat", gateway=101, incarnation="j", hears=[1, 2])
    beats(world, 100, 3)
    world.tick(1)
    assert leader(world) == 100
    world.tick(1_000)
    assert leader(world) == 101


def test_a_heartbeat_that_says_nothing_changes_nothing(world: World) -> None:
    all_beat(world, (3,), (1, 2))
    for gateway in VOTERS:
        world.publish("gateway_heartbeat", gateway=gateway, incarnation="i")
    world.tick()
    world.tick(1_000)
    assert leader(world) == 101


def test_a_leader_is_deaf_only_if_brokers_may_live(world: World) -> None:
    for broker in (1, 2, 3):
        world.publish("broker_connection_lost", broker=broker, broker_epoch=world.broker(broker).broker_epoch)
    all_beat(world, (), ())
    world.tick()
    assert leader(world) == 100
    world.beat(3)
    world.tick()
    assert leader(world) == 101


def test_a_leader_that_nobody_has_found_yet_is_not_deaf(world: World) -> None:
    all_beat(world, (), ())
    world.tick()
    assert leader(world) == 101
    for _ in range(8):
        all_beat(world, (), ())
        world.tick(1_000)
    assert leader(world) == 101


def test_who_asked_before_an_epoch_began_did_not_reach_its_leader(world: World) -> None:
    all_beat(world, (), (1, 2, 3))
    world.tick()
    assert leader(world) == 101
    world.tick(1_000)
    all_beat(world, (), (1, 2, 3))
    for _ in range(8):
        world.tick(1_000)
        all_beat(world, (), ())
    assert leader(world) == 101


def test_a_new_leader_is_judged_once_brokers_had_time_to_find_it(world: World) -> None:
    all_beat(world, (), (1,))
    world.tick()
    assert leader(world) == 101
    for _ in range(6):
        all_beat(world, (1, 2, 3), ())
        world.tick(1_000)
        assert leader(world) == 101
    all_beat(world, (1, 2, 3), ())
    world.tick(1_000)
    assert leader(world) == 100


def test_a_reset_clock_leaves_no_time_of_a_leader_in_the_future(world: World) -> None:
    all_beat(world, (3,), (1, 2))
    world.tick()
    claim_ms = world.now
    world.tick(3 * 3_600_000)
    world.now = claim_ms
    world.claim()
    quorum = world.state.cluster.quorum
    assert quorum.began_ms <= claim_ms
    assert quorum.outdone_ms == NO_TIME
    assert {world.broker(broker).heard_ms for broker in (1, 2, 3)} == {claim_ms}


def test_whoever_a_late_gateway_does_not_hear_yet_has_a_session(world: World) -> None:
    world.tick(60_000)
    world.publish("gateway_started", gateway=101, incarnation="j", voters=VOTERS)
    world.publish("gateway_heartbeat", gateway=101, incarnation="j", hears=[1])
    world.tick()
    assert leader(world) == 101
    for _ in range(8):
        world.tick(1_000)
        world.publish("gateway_heartbeat", gateway=101, incarnation="j", hears=[1])
    world.tick()
    assert world.broker(3).is_live


def test_what_a_leader_heard_before_a_time_without_an_engine_does_not_count(world: World) -> None:
    all_beat(world, (1,), (), ())
    world.now += 60_000
    world.claim()
    assert world.broker(3).last_contact_ms == world.now + FIND_MS


def test_a_short_session_leaves_time_to_find_the_leader() -> None:
    world = World(broker_session_timeout_ms="3000")
    world.claim()
    for gateway in VOTERS:
        world.publish("gateway_started", gateway=gateway, incarnation="i", voters=VOTERS)
    for broker in (1, 2, 3):
        world.join(broker, behind_gateway=True)
    world.tick(FIND_MS)
    for broker in (1, 2, 3):
        world.beat(broker)
    all_beat(world, (1,), (2, 3))
    world.tick()
    world.tick(1_000)
    assert leader(world) == 101
    until_ms = {number: world.broker(number).last_contact_ms - world.now for number in (1, 2, 3)}
    assert until_ms == {1: FIND_MS - 3_000, 2: FIND_MS, 3: FIND_MS}
