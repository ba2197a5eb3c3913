"""When something is due on a quiet cluster. Every ``World`` checks that an event that may wait leads to no decision."""

from msgspec.structs import replace

from controller_logic.rest import AT_ONCE, changes_nothing, next_due_ms
from state.event_text import decode
from state.policy import Policy
from tests.controller_logic import test_tokens
from tests.properties.laws import policy_in_force
from tests.support.world import World


def in_force(world: World) -> Policy:
    return policy_in_force(world.state, world.policy, world.overrides)


def due_ms(world: World, clock_ms: int | None = None) -> int | None:
    """Return when the next thing is due if nobody is heard until then, as seen at ``clock_ms`` if that is given."""
    cluster = world.state.cluster
    if clock_ms is not None:
        cluster = replace(cluster, clock_ms=clock_ms)
    return next_due_ms([cluster], in_force(world))


def test_a_session_is_due_at_its_end_and_then_at_once() -> None:
    world = World(1, auto_leader_rebalance_enable="false")
    end_ms = world.broker(1).last_contact_ms + in_force(world).broker_session_timeout_ms
    assert due_ms(world) == end_ms
    assert due_ms(world, end_ms - 1) == end_ms
    assert due_ms(world, end_ms) == AT_ONCE


def test_nothing_is_due_without_live_brokers() -> None:
    world = World(1, auto_leader_rebalance_enable="false")
    world.fence(1)
    assert due_ms(world) is None


def test_a_token_is_due_at_its_expiry() -> None:
    started = test_tokens.world()
    without = due_ms(started, 2_000)
    test_tokens.token(started, test_tokens.VALUES | {"expiry_timestamp_ms": "2500"})
    assert (without, due_ms(started, 2_000)) == (3_000, 2_500)


def test_a_gateway_that_stops_may_hand_over_at_its_next_heartbeat() -> None:
    world = World()
    world.publish("gateway_started", gateway=100, incarnation="first", voters=[100, 101])
    beat = decode(b'{"kind":"gateway_heartbeat","time_ms":1,"gateway":100,"incarnation":"first"}')
    assert changes_nothing(beat, world.state.cluster, in_force(world))
    world.publish("gateway_heartbeat", gateway=100, incarnation="first", want_shutdown=True)
    assert not changes_nothing(beat, world.state.cluster, in_force(world))


def test_nothing_is_due_while_no_gateway_can_lead_until_one_is_heard() -> None:
    world = World(auto_leader_rebalance_enable="false", broker_connection_lost_grace_ms="100")
    for gateway in (100, 101):
        world.publish("gateway_started", gateway=gateway, incarnation="first", voters=[100, 101])
    world.join(1, behind_gateway=True)
    world.publish("broker_connection_lost", broker=1, broker_epoch=world.broker(1).broker_epoch)
    beat = decode(b'{"kind":"gateway_heartbeat","time_ms":1,"gateway":101,"incarnation":"first"}')
    assert changes_nothing(beat, world.state.cluster, in_force(world))
    world.tick(in_force(world).broker_session_timeout_ms * 2)
    assert world.broker(1).is_live
    assert due_ms(world) is None
    assert not changes_nothing(beat, world.state.cluster, in_force(world))
    world.publish("gateway_heartbeat", gateway=101, incarnation="first")
    # It leads from the next tick on.
    assert due_ms(world) == AT_ONCE


def test_a_session_that_ended_before_the_gateways_fell_silent_is_due() -> None:
    world = World(auto_leader_rebalance_enable="false")
    world.publish("gateway_started", gateway=100, incarnation="first", voters=[100])
    world.join(1, behind_gateway=True)
    cluster, policy = world.state.cluster, in_force(world)
    heard_ms = world.broker(1).last_contact_ms + policy.broker_session_timeout_ms
    gateway = replace(cluster.gateways[100], last_contact_ms=heard_ms)
    silent = replace(cluster, gateways={100: gateway}, clock_ms=heard_ms + policy.controller_quorum_fetch_timeout_ms)
    assert next_due_ms([silent], policy) == AT_ONCE
    earlier = replace(silent, gateways={100: replace(gateway, last_contact_ms=heard_ms - 1)})
    assert next_due_ms([earlier], policy) is None
