"""What brokers that go and come mean for the partitions."""

import pytest

from state.decisions import LeaderAndIsr
from tests.support.world import World


@pytest.fixture
def trio() -> World:
    world = World(1, 2, 3)
    world.create("t", (1, 2, 3))
    return world


@pytest.fixture
def lone() -> World:
    """Topic t on brokers 1 and 2, its only ISR member, broker 1, gone."""
    world = World(1, 2)
    world.create("t", (1, 2))
    world.alter_isr("t", (1,))
    world.fence(1)
    return world


def test_the_first_live_in_sync_replica_takes_over_and_the_epoch_goes_up_once(trio: World) -> None:
    trio.fence(1)
    assert trio.line("t") == "Online leader=2 epoch=1/1 isr=2,3"
    assert trio.said == "LEADER_FENCED to 2,3"
    assert trio.replica_states("t") == "Offline,Online,Online"


def test_the_assignment_names_the_next_leader_not_the_isr(trio: World) -> None:
    trio.alter_isr("t", (3, 1, 2))
    trio.alter_isr("t", (1, 3))
    trio.alter_isr("t", (1, 3, 2))
    trio.fence(1)
    assert trio.line("t") == "Online leader=2 epoch=1/3 isr=3,2"


def test_a_follower_leaves_the_isr(trio: World) -> None:
    trio.fence(3)
    assert trio.line("t") == "Online leader=1 epoch=1/1 isr=1,2"
    assert trio.said == "REPLICA_FENCED to 1,2"


def test_a_follower_that_was_not_in_sync_changes_its_own_state_only(trio: World) -> None:
    trio.alter_isr("t", (1, 2))
    trio.fence(3)
    assert trio.all(LeaderAndIsr) == []
    assert trio.replica_states("t") == "Online,Online,Offline"


def test_brokers_that_go_at_the_same_tick_go_together(trio: World) -> None:
    trio.fence(1, 2)
    assert trio.line("t") == "Online leader=3 epoch=1/1 isr=3"


def test_of_an_isr_that_goes_at_once_the_leader_stays(trio: World) -> None:
    trio.fence(1, 2, 3)
    assert trio.line("t") == "Offline leader=none epoch=1/1 isr=1"


def test_the_last_member_stays_in_the_isr(lone: World) -> None:
    assert lone.line("t") == "Offline leader=none epoch=1/2 isr=1"
    assert lone.said == "LEADER_FENCED to 2"


def test_without_unclean_election_a_replica_out_of_sync_does_not_lead(lone: World) -> None:
    lone.fence(2)
    lone.beat(2)
    assert lone.line("t") == "Offline leader=none epoch=1/2 isr=1"
    assert lone.said == "REPLICA_ONLINE to 2"


def test_the_last_member_leads_again_when_it_returns(lone: World) -> None:
    lone.beat(1)
    assert lone.line("t") == "Online leader=1 epoch=2/3 isr=1"
    assert lone.said == "LEADER_RETURNED to 1,2"


@pytest.mark.parametrize("where", ["topic", "cluster"])
def test_with_unclean_election_a_replica_out_of_sync_leads_and_recovers(where: str) -> None:
    unclean = "unclean_leader_election_enable"
    world = World(1, 2, **({unclean: "true"} if where == "cluster" else {}))
    world.create("t", (1, 2), **({unclean: "true"} if where == "topic" else {}))
    world.alter_isr("t", (1,))
    world.fence(1)
    assert world.line("t") == "Online leader=2 epoch=1/2 isr=2 recovering"
    assert world.said == "UNCLEAN_ELECTION unclean to 2"


def test_a_topic_that_forbids_unclean_election_is_obeyed_over_the_cluster() -> None:
    world = World(1, 2, unclean_leader_election_enable="true")
    world.create("t", (1, 2), unclean_leader_election_enable="false")
    world.alter_isr("t", (1,))
    world.fence(1)
    assert world.line("t") == "Offline leader=none epoch=1/2 isr=1"


def test_a_broker_that_returns_hears_who_leads_in_unchanged_epochs(trio: World) -> None:
    trio.fence(3)
    before = trio.line("t")
    trio.beat(3)
    assert trio.said == "REPLICA_ONLINE to 3"
    assert not trio.one(LeaderAndIsr).is_new
    assert trio.line("t") == before
    assert trio.replica_states("t") == "Online,Online,Online"


def test_a_returned_leader_follows(trio: World) -> None:
    trio.fence(1)
    trio.beat(1)
    assert trio.line("t") == "Online leader=2 epoch=1/1 isr=2,3"


def test_a_new_partition_gets_its_first_leader_when_a_replica_comes() -> None:
    world = World()
    world.register(1)
    world.register(2)
    world.create("t", (1, 2))
    assert world.line("t") == "New leader=none epoch=-1/-1 isr="
    world.beat(2)
    assert world.line("t") == "Online leader=2 epoch=0/0 isr=2"
    assert world.one(LeaderAndIsr).is_new


def test_partitions_that_the_broker_has_no_part_in_are_left_alone(trio: World) -> None:
    trio.create("u", (2, 3))
    trio.fence(1)
    assert trio.line("u") == "Online leader=2 epoch=0/0 isr=2,3"
    assert [decision.topic for decision in trio.all(LeaderAndIsr)] == ["t"]
