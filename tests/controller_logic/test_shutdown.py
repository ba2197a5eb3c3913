"""Controlled shutdown."""

import pytest

from state.broker import BrokerState
from state.decisions import Answer, BrokerDecision, LeaderAndIsr, StopReplica
from tests.support.world import World


@pytest.fixture
def trio() -> World:
    """Topics led (led by 1, 2 follows), followed (led by 2) and alone (on 1 only)."""
    world = World(1, 2, 3)
    world.create("led", (1, 2))
    world.create("followed", (2, 1))
    world.create("alone", (1,))
    return world


def shut_down(world: World, broker: int) -> tuple[str, int]:
    epoch = world.broker(broker).broker_epoch
    world.publish("controlled_shutdown", broker=broker, broker_epoch=epoch, request_id="s")
    said, answer = world.one(BrokerDecision), world.one(Answer)
    assert said.remaining == answer.remaining
    assert (answer.error, answer.request_id) == ("NONE", "s")
    assert (answer.broker, answer.broker_epoch) == (said.broker, said.broker_epoch) == (broker, epoch)
    assert isinstance(answer.remaining, int)
    return said.state, answer.remaining


def test_it_hands_over_what_it_leads_and_stops_following(trio: World) -> None:
    assert shut_down(trio, 1) == ("shutdown_allowed", 0)
    assert trio.line("led") == "Online leader=2 epoch=1/1 isr=2"
    assert trio.line("followed") == "Online leader=2 epoch=1/1 isr=2"
    assert trio.line("alone") == "Online leader=1 epoch=0/0 isr=1"
    assert {(d.topic, d.to) for d in trio.all(LeaderAndIsr)} == {("led", (1, 2)), ("followed", (2,))}
    stop = trio.one(StopReplica)
    assert (stop.topic, stop.to, stop.delete, stop.leader_epoch) == ("followed", (1,), False, 1)
    assert trio.broker(1).state == BrokerState.controlled_shutdown


def test_a_heartbeat_may_ask_for_it(trio: World) -> None:
    trio.beat(1, shutdown=True)
    assert trio.one(BrokerDecision).state == "shutdown_allowed"
    assert trio.line("led") == "Online leader=2 epoch=1/1 isr=2"


def test_what_nobody_in_sync_can_take_over_remains(trio: World) -> None:
    trio.alter_isr("led", (1,))
    assert shut_down(trio, 1) == ("controlled_shutdown", 1)
    assert trio.line("led") == "Online leader=1 epoch=0/1 isr=1"


def test_nothing_is_handed_to_a_broker_that_shuts_down_itself(trio: World) -> None:
    shut_down(trio, 2)
    assert shut_down(trio, 1) == ("controlled_shutdown", 2)


def test_asking_again_looks_again(trio: World) -> None:
    trio.alter_isr("led", (1,))
    shut_down(trio, 1)
    trio.join(2)
    assert shut_down(trio, 1) == ("controlled_shutdown", 1)
    trio.fence(1)
    assert trio.line("led") == "Offline leader=none epoch=1/2 isr=1"
    assert shut_down(trio, 1) == ("shutdown_allowed", 0)


def test_a_partition_handed_over_is_stopped_when_it_asks_again(trio: World) -> None:
    shut_down(trio, 1)
    shut_down(trio, 1)
    assert [stop.topic for stop in trio.all(StopReplica)] == ["led"]
    shut_down(trio, 1)
    assert trio.all(StopReplica) == []


def test_its_session_still_counts(trio: World) -> None:
    shut_down(trio, 1)
    trio.fence(1)
    assert trio.one(BrokerDecision).reason == "BROKER_SESSION_EXPIRED"
    assert trio.line("alone") == "Offline leader=none epoch=1/1 isr=1"


def test_it_comes_back_by_registering_anew(trio: World) -> None:
    shut_down(trio, 1)
    trio.join(1, incarnation="second")
    assert trio.broker(1).is_active
    assert trio.replica_states("followed") == "Online,Online"


def test_it_may_be_switched_off() -> None:
    world = World(1, 2, controlled_shutdown_enable="false")
    world.create("t", (1, 2))
    world.beat(1, shutdown=True)
    assert (world.kinds, world.error) == ("answer", "INVALID_REQUEST")
    assert world.broker(1).is_active
