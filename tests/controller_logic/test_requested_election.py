"""Elections that an admin asks for."""

import pytest

from state.decisions import Answer
from tests.support.world import World


@pytest.fixture
def away() -> World:
    """Topic t led by 2 with the preferred 1 back in sync; u led by 2, with 1 not yet."""
    world = World(1, 2, 3)
    world.create("t", (1, 2, 3))
    world.create("u", (1, 2))
    world.fence(1)
    world.beat(1)
    world.alter_isr("t", (2, 3, 1))
    return world


@pytest.fixture
def leaderless() -> World:
    world = World(1, 2)
    world.create("t", (1, 2))
    world.alter_isr("t", (1,))
    world.fence(1)
    return world


def elect(world: World, election_type: str, *named: tuple[str, int]) -> list[str]:
    partitions = [{"topic": topic, "partition": partition} for topic, partition in named] or None
    world.publish("elect_leaders", election_type=election_type, partitions=partitions)
    results = world.one(Answer).results
    assert isinstance(results, tuple)
    return [f"{result.topic}-{result.partition} {result.error}" for result in results]


def test_the_preferred_replica_leads_again(away: World) -> None:
    assert elect(away, "preferred", ("t", 0)) == ["t-0 NONE"]
    assert away.line("t") == "Online leader=1 epoch=2/3 isr=2,3,1"
    assert away.said == "PREFERRED_ELECTION to 1,2,3"
    assert away.error == "NONE"


def test_a_preferred_replica_out_of_sync_does_not(away: World) -> None:
    assert elect(away, "preferred", ("u", 0)) == ["u-0 PREFERRED_LEADER_NOT_AVAILABLE"]
    assert away.error == "PREFERRED_LEADER_NOT_AVAILABLE"


def test_a_preferred_replica_that_shuts_down_does_not(away: World) -> None:
    away.beat(1, shutdown=True)
    assert elect(away, "preferred", ("t", 0)) == ["t-0 PREFERRED_LEADER_NOT_AVAILABLE"]


def test_one_that_leads_already_needs_no_election(away: World) -> None:
    elect(away, "preferred", ("t", 0))
    assert elect(away, "preferred", ("t", 0)) == ["t-0 ELECTION_NOT_NEEDED"]


def test_each_that_is_named_has_its_result_once_and_the_first_refusal_stands_for_all(away: World) -> None:
    named = (("u", 0), ("t", 9), ("t", 0), ("nowhere", 0), ("t", 0))
    assert elect(away, "preferred", *named) == [
        "nowhere-0 UNKNOWN_TOPIC_OR_PARTITION",
        "t-0 NONE",
        "t-9 UNKNOWN_TOPIC_OR_PARTITION",
        "u-0 PREFERRED_LEADER_NOT_AVAILABLE",
    ]
    assert away.error == "UNKNOWN_TOPIC_OR_PARTITION"


def test_of_all_those_that_need_none_are_left_out(away: World) -> None:
    assert elect(away, "preferred") == ["t-0 NONE", "u-0 PREFERRED_LEADER_NOT_AVAILABLE"]
    assert elect(away, "unclean") == []
    assert away.error == "NONE"


def test_an_unclean_election_makes_whoever_is_online_leader(leaderless: World) -> None:
    assert elect(leaderless, "unclean", ("t", 0)) == ["t-0 NONE"]
    assert leaderless.line("t") == "Online leader=2 epoch=2/3 isr=2 recovering"
    assert leaderless.said == "UNCLEAN_ELECTION unclean to 2"


def test_an_unclean_election_asks_for_a_partition_without_a_leader(away: World) -> None:
    assert elect(away, "unclean", ("t", 0)) == ["t-0 ELECTION_NOT_NEEDED"]


def test_an_unclean_election_asks_for_a_replica_online(leaderless: World) -> None:
    leaderless.fence(2)
    assert elect(leaderless, "unclean") == ["t-0 ELIGIBLE_LEADERS_NOT_AVAILABLE"]
