"""What one failure would cost, by example and against the rules themselves."""

import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import structs

from controller_logic.replay import logged
from controller_logic.step import step
from state.cluster import State
from state.ids import NO_LEADER
from state.partition import Topic
from state.policy import Policy, for_topic
from state.risk import Loss, risk_of, stand_of
from tests.support.random_logs import draws, walk
from tests.support.scenes import Draw
from tests.support.world import World

POLICY = Policy(num_partitions=2, min_insync_replicas=2)
ELIGIBLE = structs.replace(POLICY, eligible_leader_replicas_version=1)


def _cluster() -> World:
    world = World()
    for broker, rack in ((1, "a"), (2, "a"), (3, "b")):
        world.join(broker, rack=rack)
    world.create("orders", (1, 2, 3), min_insync_replicas="2")
    world.create("pairs", (2, 1), min_insync_replicas="2")
    world.create("single", (3,))
    return world


def test_each_broker_and_rack_has_its_cost_and_the_worst_comes_first() -> None:
    world = _cluster()
    found = risk_of(world.state.cluster, world.state.topics.values())
    assert found.counts == {"offline": 0, "under_min_isr": 0, "one_failure_from_offline": 1, "at_min_isr": 2}
    assert found.brokers == [(3, Loss(offline=1)), (1, Loss(0, 1, 1)), (2, Loss(0, 1, 1))]
    assert found.racks == [("a", Loss(1, 1, 1)), ("b", Loss(offline=1))]
    assert [(one.topic, one.partition) for one in found.partitions] == [("single", 0), ("pairs", 0)]


def test_a_partition_refuses_writes_and_then_has_one_leader_left() -> None:
    world = _cluster()
    world.fence(2, 3)
    found = risk_of(world.state.cluster, world.state.topics.values())
    assert found.counts == {"offline": 1, "under_min_isr": 2, "one_failure_from_offline": 2, "at_min_isr": 1}
    assert found.partitions[0].topic == "single"
    assert found.brokers[0] == (1, Loss(2, 0, 0))


def test_a_leader_without_in_sync_followers_has_an_eligible_one_to_follow_it() -> None:
    """Broker 2 has left the ISR and is online, and broker 3 is not."""
    world = World(eligible_leader_replicas_version="1")
    for broker, rack in ((1, "a"), (2, "b"), (3, "b")):
        world.join(broker, rack=rack)
    world.create("orders", (1, 2, 3), min_insync_replicas="2")
    world.fence(3)
    world.alter_isr("orders", (1,))
    found = risk_of(world.state.cluster, world.state.topics.values())
    assert found.partitions[0].stand.elr == (2,)
    assert found.counts == {"offline": 0, "under_min_isr": 1, "one_failure_from_offline": 0, "at_min_isr": 0}
    assert found.brokers == [(1, Loss(leaders_moved=1)), (2, Loss()), (3, Loss())]
    assert found.racks == [("a", Loss(leaders_moved=1)), ("b", Loss())]
    world.fence(2)
    found = risk_of(world.state.cluster, world.state.topics.values())
    assert found.counts["one_failure_from_offline"] == 1
    assert found.brokers[0] == (1, Loss(offline=1))


@settings(deadline=None, max_examples=200)
@given(draws(max_size=30), st.sampled_from((POLICY, ELIGIBLE)))
@example([*[("register", 0, 0, 0)] * 8, ("create", 0, 2, 0), ("alter_isr", 0, 6, 0)], POLICY)
@example([*[("register", 0, 0, 0)] * 16, ("create", 0, 1, 0), ("alter_isr", 0, 2, 0)], ELIGIBLE)
@example(
    [
        *[("register", 0, 0, 0)] * 9,
        ("create", 0, 3, 0),
        ("second_move", 0, 8, 9),
        ("register", 0, 0, 0),
        ("register", 0, 0, 0),
        ("beat", 2, 0, 0),
        ("shutdown", 0, 0, 0),
    ],
    ELIGIBLE,
)
def test_each_loss_is_what_the_rules_decide_when_it_happens(drawn: list[Draw], policy: Policy) -> None:
    *_, (_, _, last) = walk(drawn, policy)
    before = last.state
    found = risk_of(before.cluster, before.topics.values())
    for broker, loss in found.brokers:
        after = _without(before, broker, policy)
        led = _led(after) - _unclean(before, after)
        assert loss.offline == len(_led(before) - led), broker
        if not any(one.is_reassigning for topic in before.topics.values() for one in topic.partitions):
            # The end of a reassignment may move leaders, too.
            assert loss.refusing_writes == len(_accepting(before) & led - _accepting(after)), broker


def _without(state: State, broker: int, policy: Policy) -> State:
    """Return what the rules make of the state when ``broker`` is unregistered."""
    event = {"kind": "broker_unregister", "time_ms": state.cluster.clock_ms, "broker": broker}
    return step(state, list(logged([(state.cluster.seq + 1, msgspec.json.encode(event))])), policy).state


def _created(state: State) -> list[Topic]:
    return [topic for topic in state.topics.values() if topic.shown_state.name == "created"]


def _led(state: State) -> set[tuple[str, int]]:
    return {(t.topic, one.partition) for t in _created(state) for one in t.partitions if one.leader != NO_LEADER}


def _unclean(before: State, after: State) -> set[tuple[str, int]]:
    """Return the partitions whose new leader was not in sync: topics may allow that, and it loses records."""
    in_sync = {(t.topic, one.partition): (*one.isr, *one.elr) for t in _created(before) for one in t.partitions}
    leaders = {(t.topic, one.partition): one.leader for t in _created(after) for one in t.partitions}
    return {where for where in _led(after) if leaders[where] not in in_sync[where]}


def _accepting(state: State) -> set[tuple[str, int]]:
    """Return the partitions with a leader that accept writes with acks=all."""
    held = {(t.topic, one.partition): (t, one) for t in _created(state) for one in t.partitions}
    return {
        where
        for where in _led(state)
        for topic, one in [held[where]]
        if len(one.isr) >= min(for_topic(state.cluster.policy, topic.config).min_insync_replicas, len(one.replicas))
    }


def test_the_effective_min_isr_is_never_more_than_the_replicas() -> None:
    world = _cluster()
    topic = world.state.topics["single"]
    policy = for_topic(world.state.cluster.policy, {"min.insync.replicas": "3"})
    assert stand_of(topic.partitions[0], policy.min_insync_replicas).min_isr == 1
