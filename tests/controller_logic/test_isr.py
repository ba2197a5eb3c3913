"""The order of the fences before an ISR change, and how a leader says that it has recovered."""

from typing import Any

import pytest

from state.decisions import LeaderAndIsr
from tests.support.world import World


@pytest.fixture
def trio() -> World:
    """Topic t on 1, 2, 3, led by 1 in leader epoch 1 (3 went, and came back, out of sync)."""
    world = World(1, 2, 3)
    world.create("t", (1, 2, 3))
    world.fence(3)
    world.beat(3)
    assert world.line("t") == "Online leader=1 epoch=1/1 isr=1,2"
    return world


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"topic": "nowhere", "broker_epoch": 0}, "UNKNOWN_TOPIC_OR_PARTITION"),
        ({"broker_epoch": 0, "leader_epoch": 0}, "STALE_BROKER_EPOCH"),
        ({"leader_epoch": 0, "broker": 2, "partition_epoch": 0}, "FENCED_LEADER_EPOCH"),
        ({"broker": 2, "partition_epoch": 0}, "INVALID_REQUEST"),
        ({"partition_epoch": 0, "isr": []}, "INVALID_UPDATE_VERSION"),
    ],
)
def test_fences_are_checked_in_order(trio: World, fields: dict[str, Any], error: str) -> None:
    trio.alter_isr("t", (1, 3), **fields)
    assert trio.error == error


@pytest.fixture
def recovering() -> World:
    """Topic t led by 2 in leader epoch 1 after an unclean election, with 3 out of sync."""
    world = World(1, 2, 3, unclean_leader_election_enable="true")
    world.create("t", (1, 2, 3))
    world.alter_isr("t", (1,))
    world.fence(1)
    assert world.line("t") == "Online leader=2 epoch=1/2 isr=2 recovering"
    return world


@pytest.mark.parametrize("state", ["RECOVERED", 0, None])
def test_a_leader_that_has_recovered_says_so(recovering: World, state: str | int | None) -> None:
    recovering.alter_isr("t", (2, 3), leader_recovery_state=state)
    assert recovering.line("t") == "Online leader=2 epoch=1/3 isr=2,3"
    assert recovering.one(LeaderAndIsr).reason == "LEADER_RECOVERED"
