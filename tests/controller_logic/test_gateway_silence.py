"""The silence of gateways where the clock moves at ticks only, as on a bus."""

import pytest

from state.broker import BrokerState
from tests.controller_logic.test_gateways import gateway_beats, leads, start, tick
from tests.support.world import World, claimed


@pytest.fixture
def on_a_bus() -> World:
    """Gateways 100, which leads, and 101; behind them broker 1."""
    world = claimed()
    world.entered_ms = world.now
    start(world, 100)
    start(world, 101)
    world.join(1, behind_gateway=True)
    return world


def test_the_time_out_is_the_least_silence_before_another_gateway_leads(on_a_bus: World) -> None:
    """A heartbeat just before a tick was counted at the tick before that one."""
    tick(on_a_bus, 500)
    gateway_beats(on_a_bus, 100)
    tick(on_a_bus, 500)
    on_a_bus.now += 1_999
    gateway_beats(on_a_bus, 101)
    tick(on_a_bus)
    assert leads(on_a_bus) == (100, 1), "it may have been heard just before the tick"
    tick(on_a_bus, 1)
    assert leads(on_a_bus)[0] == 101


def test_a_gateway_that_has_just_started_is_not_silent_a_tick_too_early(on_a_bus: World) -> None:
    tick(on_a_bus, 500)
    on_a_bus.now += 1_999
    gateway_beats(on_a_bus, 101)
    tick(on_a_bus)
    assert leads(on_a_bus) == (100, 1)


def test_a_broker_is_silent_only_up_to_when_its_gateway_was_surely_heard(on_a_bus: World) -> None:
    """The gateway may have died just after the tick before, and could pass nothing on since."""
    tick(on_a_bus, 500)
    on_a_bus.beat(1)
    tick(on_a_bus, 500)
    tick(on_a_bus, 8_500)
    gateway_beats(on_a_bus, 100)
    tick(on_a_bus, 500)
    assert on_a_bus.broker(1).state is BrokerState.active
    gateway_beats(on_a_bus, 100)
    tick(on_a_bus, 500)
    assert on_a_bus.broker(1).state is BrokerState.fenced
