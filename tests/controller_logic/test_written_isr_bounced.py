"""A member of a written ISR that restarted since is out of sync, as after a bounce in ZooKeeper mode."""

import pytest

from state.decisions import LeaderAndIsr
from state.reason import Reason
from tests.controller_logic.written_isrs import led, write
from tests.support.world import World


def bounce(world: World, broker: int, zxid: int) -> None:
    world.join(broker, incarnation=str(zxid))


def test_a_leader_that_bounced_since_it_wrote_its_isr_leaves_it() -> None:
    world = led()
    bounce(world, 1, 210)
    assert world.partition("t").isr == (2, 3)
    assert write(world, 1, 3, partition_epoch=1, zxid=205) == "NONE"
    held = world.partition("t")
    assert (held.leader, held.leader_epoch, held.isr) == (3, 2, (3,))


@pytest.mark.parametrize("zxid", [211, None])
def test_a_leader_that_did_not_bounce_since_stays(zxid: int | None) -> None:
    """Or of which it is not known."""
    world = led()
    bounce(world, 1, 210)
    given = {} if zxid is None else {"zxid": zxid}
    assert write(world, 1, 2, partition_epoch=1, **given) == "NONE"
    assert (world.partition("t").leader, world.partition("t").isr) == (2, (1, 2))


def test_the_last_member_stays_although_it_bounced() -> None:
    world = led()
    bounce(world, 1, 210)
    assert write(world, 1, partition_epoch=1, zxid=205) == "NONE"
    assert (world.partition("t").leader, world.partition("t").isr) == (1, (1,))


def test_all_members_stay_if_all_bounced() -> None:
    """As where the classic controller hears of it all at once."""
    world = led()
    bounce(world, 1, 210)
    bounce(world, 2, 211)
    assert write(world, 1, 2, partition_epoch=2, zxid=205) == "NONE"
    assert (world.partition("t").leader, world.partition("t").isr) == (1, (1, 2))


def test_a_leader_that_bounced_does_not_lead_while_another_member_lived_on() -> None:
    world = led()
    world.alter_isr("t", (1,))
    # It added 2 before it bounced, and the engine let it lead again.
    bounce(world, 1, 210)
    before = world.partition("t")
    assert (before.leader, before.isr) == (1, (1,))
    assert write(world, 1, 2, partition_epoch=before.partition_epoch, zxid=205) == "NONE"
    held = world.partition("t")
    assert (held.leader, held.isr, held.leader_epoch) == (2, (2,), before.leader_epoch + 1)


def test_a_member_that_bounced_leaves_and_its_leader_hears_of_it() -> None:
    """Although the ISR is what the engine knew: the leader acts on another one."""
    world = led()
    world.alter_isr("t", (1, 2))
    bounce(world, 3, 210)
    assert write(world, 1, 2, 3, partition_epoch=1, zxid=205) == "NONE"
    told = world.one(LeaderAndIsr)
    assert (told.isr, told.leader_epoch, told.partition_epoch, told.reason) == ((1, 2), 1, 2, Reason.ISR_SHRUNK)
    assert 1 in told.to
    # A repeated event is about an older partition epoch.
    assert write(world, 1, 2, 3, partition_epoch=1, zxid=205) == "INVALID_UPDATE_VERSION"


def test_a_leader_hears_that_the_one_that_it_added_is_away() -> None:
    world = led()
    world.alter_isr("t", (1, 2))
    world.fence(3)
    assert write(world, 1, 2, 3, partition_epoch=1) == "NONE"
    told = [(one.isr, one.leader_epoch) for one in world.all(LeaderAndIsr)]
    assert told == [((1, 2), 1)]


def test_a_leader_that_wrote_in_an_earlier_epoch_hears_of_the_present_one_anyway() -> None:
    world = led()
    world.fence(3)
    assert write(world, 1, 2, 3, partition_epoch=1) == "NONE"
    assert world.all(LeaderAndIsr) == []
