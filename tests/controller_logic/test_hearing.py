"""Which gateway leads, by the brokers that gateways hear: what no story shows."""

import pytest

from controller_logic.rest import AT_ONCE, changes_nothing, next_due_ms
from state.decisions import QuorumDecision
from state.event_text import decode
from state.ids import NO_TIME
from state.policy import Policy
from tests.properties.laws import policy_in_force
from tests.support.world import World, claimed

VOTERS = [100, 101, 102]
FIND_MS = 6_000


def beats(world: World, gateway: int, *hears: int) -> None:
    world.publish("gateway_heartbeat", gateway=gateway, incarnation="i", hears=hears)


def all_beat(world: World, *by_gateway: tuple[int, ...]) -> None:
    """Let the gateways say which brokers they hear."""
    for gateway, hears in zip(VOTERS, by_gateway, strict=False):
        beats(world, gateway, *hears)


def in_force(world: World) -> Policy:
    return policy_in_force(world.state, world.policy, world.overrides)


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


def test_at_rest_only_a_doubt_is_due(world: World) -> None:
    world.tick()
    cluster, policy = world.state.cluster, in_force(world)
    assert next_due_ms([cluster], policy) != AT_ONCE
    said = decode(b'{"kind":"gateway_heartbeat","time_ms":1,"gateway":100,"incarnation":"i","hears":[1,2,3]}')
    another = decode(b'{"kind":"gateway_heartbeat","time_ms":1,"gateway":100,"incarnation":"i","hears":[1,2]}')
    assert changes_nothing(said, cluster, policy)
    assert not changes_nothing(another, cluster, policy)
    beats(world, 101, 1, 2, 3, 4)
    assert next_due_ms([world.state.cluster], policy) != AT_ONCE, "a broker that nobody knows"
    beats(world, 100, 1)
    assert next_due_ms([world.state.cluster], policy) == AT_ONCE


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
