"""A quorum's epoch is never begun twice, not even where what is known of it was put back from a backup."""

from tests.controller_logic.test_gateways import gateway_beats, leads, start, tick
from tests.controller_logic.test_gateways import world as world
from tests.controller_logic.world import World


def test_a_quorum_put_back_from_a_backup_repeats_no_epoch() -> None:
    world = World()
    world.publish("controller_started", controller_id="c", controller_epoch=1, rules_version=2)
    start(world, 100)
    gateway_beats(world, 100)
    backup = world.state
    # What is lost: within an hour gateway 100 starts again and again.
    for life in range(50):
        world.now += 60_000
        tick(world)
        gateway_beats(world, 100, "first" if life == 0 else f"life {life - 1}")
        start(world, 100, f"life {life}")
    seen = leads(world)[1]
    now = world.now
    world.state = backup
    world.now = now
    # The engine comes first, and holds no silence against gateways.
    world.publish("controller_started", controller_id="c", controller_epoch=2, rules_version=2)
    tick(world)
    start(world, 100, "put back")
    assert leads(world)[1] > seen


def test_a_short_silence_takes_the_next_epoch(world: World) -> None:
    world.publish("controller_started", controller_id="c", controller_epoch=2, rules_version=2)
    gateway_beats(world, 100)
    tick(world, 59_000)
    start(world, 100, "second")
    assert leads(world) == (100, 2)


def test_a_clock_that_jumps_leaves_epochs_for_later(world: World) -> None:
    world.publish("controller_started", controller_id="c", controller_epoch=2, rules_version=2)
    gateway_beats(world, 100)
    tick(world, 10**12)
    start(world, 100, "second")
    assert leads(world) == (100, 200_000_001)
