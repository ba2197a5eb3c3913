"""The leader of the metadata quorum, and the sessions of brokers behind a silent gateway."""

import pytest

from state.broker import BrokerState
from state.decisions import Answer, BrokerDecision, QuorumDecision, Rejected
from tests.support.world import World

VOTERS = [100, 101]


def start(world: World, gateway: int, incarnation: str = "first") -> None:
    world.publish("gateway_started", gateway=gateway, incarnation=incarnation, voters=VOTERS)


def gateway_beats(world: World, gateway: int, incarnation: str = "first", late_ms: int = 0) -> None:
    world.publish("gateway_heartbeat", gateway=gateway, incarnation=incarnation, late_ms=late_ms)


def tick(world: World, ms: int = 0) -> None:
    world.now += ms
    world.publish("tick")


@pytest.fixture
def world() -> World:
    """Gateways 100, which leads, and 101; behind them broker 1, and broker 2 without a gateway."""
    world = World()
    start(world, 100)
    start(world, 101)
    world.join(1, behind_gateway=True)
    world.join(2)
    return world


def leads(world: World) -> tuple[int, int]:
    return world.state.cluster.quorum.voter, world.state.cluster.quorum.quorum_epoch


def test_the_first_gateway_leads_and_the_next_stands_by() -> None:
    world = World()
    start(world, 101)
    decision = world.one(QuorumDecision)
    assert (decision.voter, decision.incarnation, decision.voters, decision.quorum_epoch) == (
        101,
        "first",
        (100, 101),
        1,
    )
    start(world, 100)
    assert world.all(QuorumDecision) == []
    assert leads(world) == (101, 1)


def test_a_gateway_that_leads_and_starts_again_leads_in_a_new_epoch(world: World) -> None:
    start(world, 100, "second")
    assert world.one(QuorumDecision).incarnation == "second"
    assert leads(world) == (100, 2)
    start(world, 100, "second")
    assert world.all(QuorumDecision) == []


def test_a_gateway_that_is_no_voter_is_refused() -> None:
    world = World()
    world.publish("gateway_started", gateway=7, incarnation="i", voters=VOTERS, request_id="q")
    assert world.one(Rejected).field == "voters"
    assert world.error == "INVALID_REQUEST"
    assert leads(world) == (-1, 0)


def test_another_gateway_leads_when_the_leader_falls_silent(world: World) -> None:
    world.now += 1_999
    gateway_beats(world, 101)
    tick(world)
    assert leads(world) == (100, 1)
    tick(world, 1)
    # An epoch for each half second of the silence.
    assert (world.one(QuorumDecision).voter, leads(world)) == (101, (101, 5))


def test_the_leader_stays_when_nobody_else_is_heard(world: World) -> None:
    tick(world, 60_000)
    assert world.all(QuorumDecision) == []
    assert leads(world) == (100, 1)


def test_a_heartbeat_of_a_former_run_is_ignored(world: World) -> None:
    start(world, 100, "second")
    gateway_beats(world, 100, "first")
    assert world.one(Rejected).field == "incarnation"


def test_a_broker_does_not_time_out_while_its_gateway_is_silent(world: World) -> None:
    tick(world, 9_000)
    assert [decision.broker for decision in world.all(BrokerDecision)] == [2]
    gateway_beats(world, 100)
    tick(world)
    assert [decision.broker for decision in world.all(BrokerDecision)] == [1]


def test_a_gateways_delay_does_not_count_as_silence(world: World) -> None:
    world.now += 9_000
    gateway_beats(world, 100, late_ms=8_000)
    tick(world)
    assert [decision.broker for decision in world.all(BrokerDecision)] == [2]
    world.now += 7_999
    gateway_beats(world, 100)
    tick(world)
    assert world.all(BrokerDecision) == []
    world.now += 1
    gateway_beats(world, 100)
    tick(world)
    assert [decision.broker for decision in world.all(BrokerDecision)] == [1]


def test_a_standby_gateways_delay_extends_no_session(world: World) -> None:
    world.now += 9_000
    gateway_beats(world, 101, late_ms=9_000)
    gateway_beats(world, 100)
    tick(world)
    assert [decision.broker for decision in world.all(BrokerDecision)] == [1, 2]


def test_a_new_leader_gives_brokers_time_to_find_it_and_a_whole_session(world: World) -> None:
    world.now += 8_999
    world.beat(2)
    gateway_beats(world, 101)
    tick(world)
    assert leads(world)[0] == 101
    world.now += 3 * 2_000 + 8_999
    gateway_beats(world, 101)
    tick(world)
    assert world.broker(1).state is BrokerState.active
    world.now += 1
    gateway_beats(world, 101)
    tick(world)
    assert world.broker(1).state is BrokerState.fenced


def test_a_brokers_session_restarts_when_it_finds_the_new_leader(world: World) -> None:
    world.now += 2_000
    gateway_beats(world, 101)
    tick(world)
    world.beat(1)
    world.now += 9_000
    gateway_beats(world, 101)
    tick(world)
    assert world.broker(1).state is BrokerState.fenced


def test_a_new_controller_restarts_gateway_sessions(world: World) -> None:
    world.now += 5_000
    gateway_beats(world, 101)
    world.publish("controller_started", controller_id="c", controller_epoch=1)
    tick(world)
    assert leads(world)[0] == 100


def test_an_engine_delay_extends_all_sessions(world: World) -> None:
    world.now += 9_000
    world.publish("sessions_extended", by_ms=8_999)
    assert world.decisions == []
    tick(world)
    assert world.all(BrokerDecision) == []
    assert leads(world) == (100, 1)
    tick(world, 8_999)
    assert [decision.broker for decision in world.all(BrokerDecision)] == [2]


def test_no_session_is_extended_into_the_future(world: World) -> None:
    world.publish("sessions_extended", by_ms=60_000)
    world.now += 9_000
    tick(world)
    assert [decision.broker for decision in world.all(BrokerDecision)] == [2]


def test_the_answer_has_the_quorum_epoch(world: World) -> None:
    world.publish("gateway_heartbeat", gateway=101, incarnation="first", request_id=5)
    assert world.one(Answer).quorum_epoch == 1


def test_a_broker_decision_has_the_registration() -> None:
    world = World()
    features = [{"name": "metadata.version", "min_version": 7, "max_version": 27}]
    world.register(1, log_dirs=["AAAAAAAAAAAAAAAAAAAAAg"], features=features)
    told = world.one(BrokerDecision)
    assert told.log_dirs == ("AAAAAAAAAAAAAAAAAAAAAg",)
    assert [(f.name, f.min_version, f.max_version) for f in told.features or ()] == [("metadata.version", 7, 27)]


def test_a_heartbeat_of_a_former_run_is_answered_if_it_asks(world: World) -> None:
    world.publish("gateway_heartbeat", gateway=100, incarnation="former", late_ms=0, request_id="q")
    assert (world.one(Rejected).field, world.error) == ("incarnation", "STALE_BROKER_EPOCH")


def test_without_a_started_gateway_sessions_count_as_usual() -> None:
    world = World()
    world.join(1, behind_gateway=True)
    tick(world, 9_000)
    assert world.broker(1).state == BrokerState.fenced


def test_an_engine_delay_extends_gateway_sessions_too(world: World) -> None:
    world.now += 2_500
    world.publish("sessions_extended", by_ms=1_000)
    gateway_beats(world, 101)
    tick(world)
    assert leads(world) == (100, 1)
    tick(world, 499)
    assert leads(world) == (100, 1)
    gateway_beats(world, 101)
    tick(world, 1)
    assert leads(world)[0] == 101


def test_a_broker_behind_a_gateway_reports_nothing_and_has_no_backlog(world: World) -> None:
    world.create("t", (1, 2))
    assert world.partition("t").requested_epochs == (-1, 0)
    world.fence(1)
    world.publish("broker_connection_lost", broker=1, broker_epoch=world.broker(1).broker_epoch)
    world.join(1, incarnation="second", behind_gateway=True)
    assert world.partition("t").requested_epochs == (-1, 1)
    assert world.state.cluster.backlog == {2: 1}


def stops(world: World, gateway: int, incarnation: str = "first") -> None:
    world.publish("gateway_heartbeat", gateway=gateway, incarnation=incarnation, want_shutdown=True, request_id="s")


def test_a_gateway_that_stops_hands_over_at_once(world: World) -> None:
    stops(world, 100)
    decision = world.one(QuorumDecision)
    assert (decision.voter, decision.quorum_epoch, decision.reason) == (101, 2, "GATEWAY_STOPPED")
    assert world.one(Answer).quorum_epoch == 2
    # Its last heartbeats before it ends do not make it eligible again.
    gateway_beats(world, 100)
    gateway_beats(world, 101)
    tick(world)
    assert leads(world) == (101, 2)


def test_a_stopped_standby_gateway_is_not_elected(world: World) -> None:
    stops(world, 101)
    assert world.all(QuorumDecision) == []
    gateway_beats(world, 101)
    tick(world, 3_000)
    assert leads(world) == (100, 1)
    gateway_beats(world, 101)
    stops(world, 100)
    assert world.all(QuorumDecision) == [], "nobody is left"
    start(world, 101, "second")
    tick(world)
    assert leads(world) == (101, 2)


def test_a_stopped_gateway_leads_again_when_it_is_the_first_to_restart(world: World) -> None:
    stops(world, 101)
    stops(world, 100)
    start(world, 100, "second")
    assert leads(world) == (100, 2)


def test_the_stop_of_a_former_run_does_not_affect_the_current_one(world: World) -> None:
    start(world, 100, "second")
    stops(world, 100)
    assert world.one(Answer).error == "STALE_BROKER_EPOCH"
    assert leads(world) == (100, 2)
