"""An ISR that a leader wrote into ZooKeeper itself is a fact, from which the rules go on."""

from typing import Any

import pytest

from state.decisions import LeaderAndIsr, StopReplica
from state.partition import LeaderRecoveryState
from state.reason import Reason
from tests.controller_logic.written_isrs import led, write
from tests.support.world import World, claimed


def test_a_written_isr_counts_in_the_same_leader_epoch() -> None:
    world = led()
    assert write(world, 1, 3) == "NONE"
    held = world.one(LeaderAndIsr)
    assert (held.leader, held.leader_epoch, held.partition_epoch, held.isr) == (1, 0, 1, (1, 3))
    assert held.reason == Reason.ISR_SHRUNK
    assert write(world, 1, 3, 2, partition_epoch=1) == "NONE"
    assert world.one(LeaderAndIsr).reason == Reason.ISR_EXPANDED
    assert write(world, 1, 2, 3, partition_epoch=2) == "NONE"
    assert world.all(LeaderAndIsr) == []


def test_a_leader_elected_meanwhile_from_outside_the_written_isr_does_not_lead() -> None:
    world = led()
    world.fence(1)
    assert world.partition("t").leader == 2
    # 1 shrank the ISR before it died, and only 3 has what it committed since.
    assert write(world, 1, 3, partition_epoch=1) == "NONE"
    held = world.one(LeaderAndIsr)
    assert (held.leader, held.leader_epoch, held.isr, held.unclean) == (3, 2, (3,), False)


@pytest.mark.parametrize("is_online", [True, False])
def test_a_leader_elected_from_a_written_isr_need_not_recover(is_online: bool) -> None:
    """Where the engine had elected an unclean leader meanwhile, which must recover."""
    world = led(**{"unclean.leader.election.enable": "true"})
    world.alter_isr("t", (1,))
    world.fence(1)
    assert world.partition("t").leader_recovery_state == LeaderRecoveryState.RECOVERING
    if not is_online:
        world.publish("alter_config", entity="topic", name="t", config={"unclean.leader.election.enable": "false"})
    written = (1, 3) if is_online else (1,)
    assert write(world, *written, partition_epoch=world.partition("t").partition_epoch) == "NONE"
    held = world.partition("t")
    assert held.leader_recovery_state == LeaderRecoveryState.RECOVERED
    assert (held.leader, held.isr) == ((3, (3,)) if is_online else (-1, (1,)))


def test_without_a_member_online_the_partition_waits_for_one() -> None:
    world = led()
    world.fence(1)
    assert write(world, 1, partition_epoch=1) == "NONE"
    held = world.partition("t")
    assert (held.leader, held.isr) == (-1, (1,))
    world.join(1, incarnation="second")
    assert world.partition("t").leader == 1


def test_unclean_elections_may_look_outside_the_written_isr() -> None:
    world = led(**{"unclean.leader.election.enable": "true"})
    world.fence(1)
    write(world, 1, partition_epoch=1)
    assert (world.one(LeaderAndIsr).reason, world.partition("t").isr) == (Reason.UNCLEAN_ELECTION, (2,))


def test_a_leader_hears_that_a_member_that_it_wrote_is_gone() -> None:
    world = led()
    world.fence(3)
    held = world.partition("t")
    assert (held.leader, held.leader_epoch, held.isr) == (1, 1, (1, 2))
    # 1 added 3 in the epoch before.
    assert write(world, 1, 3, partition_epoch=1) == "NONE"
    held = world.partition("t")
    assert (held.leader, held.leader_epoch, held.isr) == (1, 2, (1,))


def test_a_leader_hears_that_one_it_added_is_not_online() -> None:
    world = led()
    assert write(world, 1) == "NONE"
    # 3 is not in the ISR, so no epoch rises.
    world.fence(3)
    assert write(world, 1, 2, 3, partition_epoch=1) == "NONE"
    held = world.partition("t")
    assert (held.leader, held.leader_epoch, held.isr) == (1, 1, (1, 2))


def test_a_leader_that_wrote_in_an_earlier_epoch_hears_of_its_isr() -> None:
    world = led()
    world.fence(3)
    assert write(world, 1, partition_epoch=1) == "NONE"
    held = world.partition("t")
    assert (held.leader, held.leader_epoch, held.isr) == (1, 2, (1,))


def test_a_leader_that_shuts_down_stays_in_the_isr_that_it_writes() -> None:
    world = led()
    world.alter_isr("t", (1,))
    world.publish("controlled_shutdown", broker=1, broker_epoch=world.broker(1).broker_epoch)
    before = world.partition("t")
    assert (before.leader, before.isr) == (1, (1,))
    written = {"leader_epoch": before.leader_epoch, "partition_epoch": before.partition_epoch}
    assert write(world, 1, 2, **written) == "NONE"
    assert (world.partition("t").leader, world.partition("t").isr) == (1, (1, 2))


def test_where_nobody_leads_the_isr_is_the_one_that_was_written_last() -> None:
    world = led()
    world.fence(1)
    assert write(world, 1, partition_epoch=1) == "NONE"
    before = world.partition("t")
    assert write(world, 1, partition_epoch=before.partition_epoch) == "NONE"
    assert (world.all(LeaderAndIsr), world.partition("t")) == ([], before)
    world.fence(2, 3)
    assert write(world, 2, partition_epoch=before.partition_epoch) == "NONE"
    assert (world.partition("t").leader, world.partition("t").isr) == (-1, (2,))


def test_the_high_watermark_rises_once_the_written_isr_is_smaller() -> None:
    world = led()
    world.offsets("t", b1=10, b2=10, b3=5)
    world.tick()
    assert world.partition("t").high_watermark == 5
    assert write(world, 1, 2) == "NONE"
    world.tick()
    assert world.partition("t").high_watermark == 10


@pytest.mark.parametrize(
    ("isr", "fields", "error"),
    [
        ((1, 2), {"partition_epoch": 1}, "NOT_CONTROLLER"),
        ((1, 2), {"leader_epoch": 1}, "NOT_CONTROLLER"),
        ((1, 2, 2), {}, "INVALID_REQUEST"),
        ((1, 2), {"broker": 3}, "INVALID_REQUEST"),
        ((1, 2), {"topic_id": "another"}, "UNKNOWN_TOPIC_ID"),
        ((1, 2), {"partition": 1}, "UNKNOWN_TOPIC_OR_PARTITION"),
    ],
)
def test_what_cannot_have_been_written_is_refused(isr: tuple[int, ...], fields: dict[str, Any], error: str) -> None:
    world = led()
    assert write(world, *isr, **fields) == error
    assert world.partition("t").isr == (1, 2, 3)


def test_a_report_from_another_state_is_refused_and_a_repeated_one_too() -> None:
    world = led()
    assert write(world, 1, 2) == "NONE"
    assert write(world, 1, 2) == "INVALID_UPDATE_VERSION"


def moved() -> World:
    """A world in which 2 and 3 lead and follow, because a reassignment that began at 1 and 2 has ended."""
    world = claimed(1, 2, 3)
    world.publish("create_topic", topic="t", assignment={"0": [1, 2]})
    world.publish("alter_reassignment", topic="t", partition=0, replicas=[2, 3])
    begun = world.partition("t")
    assert write(world, 1, 2, 3, leader_epoch=begun.leader_epoch, partition_epoch=begun.partition_epoch) == "NONE"
    assert world.partition("t").leader == 2
    return world


def write_alone(world: World, *isr: int) -> str:
    """Write what 1 wrote before the end of the reassignment reached ZooKeeper."""
    return write(world, *(isr or (1,)), leader_epoch=1, partition_epoch=world.partition("t").partition_epoch)


def test_a_replica_that_alone_has_what_its_leader_wrote_is_assigned_again() -> None:
    world = moved()
    assert write_alone(world) == "NONE"
    held = world.one(LeaderAndIsr)
    assert (held.leader, held.isr, held.replicas, held.removing_replicas) == (1, (1,), (2, 3, 1), (1,))
    assert (held.reason, held.unclean) == (Reason.REASSIGNMENT, False)
    assert (world.partition("t").removed, set(held.to)) == ((), {1, 2, 3})
    # The reassignment ends again once its target has caught up.
    world.alter_isr("t", (1, 2, 3))
    held = world.partition("t")
    assert (held.leader, held.isr, held.replicas, held.removing_replicas) == (2, (2, 3), (2, 3), ())


def test_a_leader_that_wrote_its_isr_and_died_is_waited_for_although_it_was_moved_away() -> None:
    world = moved()
    world.fence(1)
    assert write_alone(world) == "NONE"
    held = world.partition("t")
    assert (held.leader, held.isr, held.replicas, held.removing_replicas) == (-1, (1,), (2, 3, 1), (1,))
    world.join(1, incarnation="second")
    assert all(decision.to != (1,) for decision in world.all(StopReplica))
    assert (world.partition("t").leader, world.partition("t").isr) == (1, (1,))


def test_a_leader_that_wrote_its_isr_and_shuts_down_is_waited_for_too() -> None:
    world = moved()
    world.publish("controlled_shutdown", broker=1, broker_epoch=world.broker(1).broker_epoch)
    assert write_alone(world) == "NONE"
    assert (world.partition("t").leader, world.partition("t").isr) == (-1, (1,))
    assert world.replica_states("t") == "Online,Online,Offline"


def test_a_replica_that_was_moved_away_stays_so_if_another_has_what_was_written() -> None:
    world = moved()
    assert write_alone(world, 1, 2) == "NONE"
    assert (world.partition("t").leader, world.partition("t").replicas, world.partition("t").isr) == (2, (2, 3), (2,))
    world = moved()
    world.fence(2)
    # 3 leads, without what 1 and 2 have, and of these only 1 lives.
    assert write_alone(world, 1, 2) == "NONE"
    held = world.partition("t")
    assert (held.leader, held.isr, held.replicas) == (1, (1,), (2, 3, 1))


def test_one_that_is_still_assigned_leads_rather_than_one_that_was_moved_away() -> None:
    world = moved()
    world.fence(2)
    world.join(2, incarnation="second")
    # 3 leads, and both 1 and 2 live.
    assert write_alone(world, 1, 2) == "NONE"
    held = world.partition("t")
    assert (held.leader, held.isr, held.replicas) == (2, (2,), (2, 3))


def moved_by_three(*target: int) -> World:
    """A world in which a partition was moved from 1, 2 and 3, whose logs have yet to be removed elsewhere."""
    world = claimed(1, 2, 3, 4)
    world.publish("create_topic", topic="t", assignment={"0": [1, 2, 3]})
    world.publish("alter_reassignment", topic="t", partition=0, replicas=target)
    begun = world.partition("t")
    written = {"leader_epoch": begun.leader_epoch, "partition_epoch": begun.partition_epoch}
    assert write(world, 1, 2, 3, 4, **written) == "NONE"
    assert not world.partition("t").is_reassigning
    return world


def test_a_replica_that_nobody_needs_is_still_removed() -> None:
    world = moved_by_three(2, 4)
    assert [entry.broker for entry in world.partition("t").removed] == [1, 3]
    assert write_alone(world) == "NONE"
    assert world.partition("t").replicas == (2, 4, 1)
    assert [entry.broker for entry in world.partition("t").removed] == [3]


def test_of_several_members_that_are_away_one_that_is_assigned_stays_in_the_isr() -> None:
    world = moved_by_three(2, 3, 4)
    world.fence(1, 2, 3)
    assert world.partition("t").leader == 4
    assert write_alone(world, 1, 2, 3) == "NONE"
    held = world.partition("t")
    assert (held.leader, held.isr, held.replicas) == (-1, (2,), (2, 3, 4))


def test_without_a_member_online_one_member_stays_in_the_isr() -> None:
    world = led()
    world.fence(1, 3)
    assert world.partition("t").leader == 2
    assert write(world, 1, 3, partition_epoch=world.partition("t").partition_epoch) == "NONE"
    assert (world.partition("t").leader, world.partition("t").isr) == (-1, (1,))
