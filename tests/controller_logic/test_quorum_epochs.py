"""A quorum's epoch never starts twice, not even after a restored backup."""

import pytest

from controller_logic.gateways import EPOCH_MS, EPOCHS_ON_MAX
from state.decisions import QuorumDecision
from state.reason import Reason
from tests.controller_logic.test_gateways import gateway_beats, leads, start, tick
from tests.controller_logic.test_gateways import world as world
from tests.support.world import World


def claim(world: World, epoch: int) -> None:
    world.publish("controller_started", controller_id="c", controller_epoch=epoch)


def led() -> World:
    """Make a world whose quorum is led by gateway 100, with a heartbeat just now."""
    world = World()
    claim(world, 1)
    start(world, 100)
    gateway_beats(world, 100)
    return world


def started_again_and_again(world: World, lives: int, every_ms: int) -> int:
    """Start the leading gateway many times; return the last epoch."""
    for life in range(lives):
        tick(world, every_ms)
        gateway_beats(world, 100, "first" if life == 0 else f"life {life - 1}")
        start(world, 100, f"life {life}")
    return leads(world)[1]


def put_back(world: World, backup: World) -> None:
    """Restore the state of an earlier time; the clock continues."""
    world.state = backup.state


@pytest.mark.parametrize("every_ms", [EPOCH_MS, 3 * EPOCH_MS, 60_000])
@pytest.mark.parametrize("lives", [1, 2, 50])
@pytest.mark.parametrize("is_engine_first", [True, False])
def test_a_quorum_restored_from_a_backup_repeats_no_epoch(every_ms: int, lives: int, is_engine_first: bool) -> None:
    world, backup = led(), led()
    seen = started_again_and_again(world, lives, every_ms)
    put_back(world, backup)
    # A restore takes at least this long.
    world.now += 2 * EPOCH_MS
    if is_engine_first:
        # It does not count the time without an engine as gateways' silence.
        claim(world, 2)
        tick(world)
        start(world, 100, "put back")
    else:
        # Nothing has moved the engine's clock since the backup, but the coming claim has found the event undecided.
        now, world.found_ms = world.now, world.now
        world.now = backup.now
        start(world, 100, "put back")
        world.now, world.found_ms = now, None
        claim(world, 2)
    assert leads(world)[1] > seen


def test_nothing_is_decided_in_the_last_epoch_after_a_time_without_an_engine(world: World) -> None:
    claim(world, 2)
    gateway_beats(world, 100)
    epoch = leads(world)[1]
    world.now += 30_000
    claim(world, 3)
    decision = world.one(QuorumDecision)
    assert (decision.voter, decision.incarnation, decision.reason) == (100, "first", Reason.CONTROLLER_STARTED)
    assert decision.quorum_epoch == epoch + 30_000 // EPOCH_MS
    world.now += 1_000
    claim(world, 4)
    assert world.all(QuorumDecision) == [], "so short a time nothing can be put back in"


def test_a_short_silence_takes_the_next_epoch(world: World) -> None:
    claim(world, 2)
    gateway_beats(world, 100)
    epoch = leads(world)[1]
    tick(world, EPOCH_MS)
    start(world, 100, "second")
    assert leads(world) == (100, epoch + 1)


def test_a_clock_that_jumps_leaves_epochs_for_later(world: World) -> None:
    claim(world, 2)
    gateway_beats(world, 100)
    epoch = leads(world)[1]
    tick(world, 10**12)
    start(world, 100, "second")
    assert leads(world) == (100, epoch + EPOCHS_ON_MAX)
