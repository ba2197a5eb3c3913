"""Every target of every small partition, begun, completed and cancelled, against independently stated rules."""

from collections.abc import Iterator
from itertools import combinations, permutations

import pytest

from controller_logic.apply import apply
from controller_logic.broker_sets import BrokerSets
from controller_logic.reassignment import change_to_begin, change_to_complete, origin_of, target_of
from state.change import PartitionChange
from state.invariants import broken_rules
from state.partition import Partition, PartitionState, ReplicaState

Ids = tuple[int, ...]
ALL = (1, 2, 3, 4)
NONE: frozenset[int] = frozenset()
UP = BrokerSets(frozenset(ALL), frozenset(ALL), NONE, frozenset(ALL), NONE, NONE)
ONLINE = ReplicaState.OnlineReplica


def targets() -> Iterator[Ids]:
    for size in (1, 2, 3):
        yield from permutations(ALL, size)


def partitions(size: int) -> Iterator[Partition]:
    origin = ALL[:size]
    for count in range(1, size + 1):
        for isr in combinations(origin, count):
            for leader in isr:
                yield Partition(0, PartitionState.OnlinePartition, origin, (ONLINE,) * size, isr, leader, 5, 8)


def changed(before: Partition, change: PartitionChange | None) -> Partition:
    assert change is not None
    after = apply(before, change)
    assert broken_rules(before, after) == []
    return after


def begin(before: Partition, target: Ids) -> Partition:
    """Begin as the commit pipeline does: a move that is complete at once ends in the same change."""
    change = change_to_begin(before, target, UP, unclean_allowed=False)
    assert change is not None
    return changed(before, change_to_complete(before, change, UP, 1) or change)


def assignment(partition: Partition) -> tuple[Ids, Ids, Ids]:
    return partition.replicas, partition.adding_replicas, partition.removing_replicas


def removed(partition: Partition) -> set[int]:
    return {entry.broker for entry in partition.removed}


@pytest.mark.parametrize("size", [1, 2, 3])
def test_every_move_begins_as_kafka_says(size: int) -> None:
    for before in partitions(size):
        for target in targets():
            after = begin(before, target)
            assert target_of(after) == target
            if set(target) <= set(before.isr):
                check_complete(before, after, target)
                continue
            assert after.replicas[: len(target)] == target
            assert set(after.replicas) == set(before.replicas) | set(target)
            assert set(after.adding_replicas) == set(target) - set(before.replicas)
            assert set(after.removing_replicas) == set(before.replicas) - set(target)
            assert set(origin_of(after)) == set(before.replicas)
            assert (after.leader, after.isr, after.removed) == (before.leader, before.isr, ())
            differs = assignment(after) != assignment(before)
            assert (after.leader_epoch, after.partition_epoch) == (5 + differs, 8 + differs)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_every_move_completes_with_the_last_of_its_target(size: int) -> None:
    for before in partitions(size):
        for target in targets():
            moving = begin(before, target)
            if not moving.is_reassigning:
                continue
            joined = (*moving.isr, *(member for member in target if member not in moving.isr))
            for count in range(len(moving.isr), len(joined)):
                grown = PartitionChange(isr=joined[:count], by_leader=True)
                assert change_to_complete(moving, grown, UP, 1) is None
            check_complete(
                moving, changed(moving, change_to_complete(moving, PartitionChange(isr=joined), UP, 1)), target
            )


@pytest.mark.parametrize("size", [1, 2, 3])
def test_no_move_completes_under_a_leader_that_is_gone(size: int) -> None:
    for before in partitions(size):
        others = frozenset(ALL) - {before.leader}
        for target in targets():
            change = change_to_begin(before, target, UP, unclean_allowed=False)
            assert change is not None
            serving = BrokerSets(others, others, NONE, frozenset(ALL), NONE, NONE)
            assert change_to_complete(before, change, serving, 1) is None


def check_complete(before: Partition, after: Partition, target: Ids) -> None:
    assert (after.replicas, after.adding_replicas, after.removing_replicas) == (target, (), ())
    assert set(after.isr) == set(target)
    assert after.leader == (before.leader if before.leader in target else target[0])
    assert set(after.replica_states) == {ONLINE}
    assert removed(after) == set(before.replicas) - set(target)
    differs = assignment(after) != assignment(before)
    assert after.leader_epoch == before.leader_epoch + differs
    assert after.partition_epoch == before.partition_epoch + differs


@pytest.mark.parametrize("size", [1, 2, 3])
def test_every_move_is_cancelled_back_to_where_it_was(size: int) -> None:
    for before in partitions(size):
        for target in targets():
            moving = begin(before, target)
            if moving.is_reassigning:
                after = begin(moving, origin_of(moving))
                assert set(after.replicas) == set(before.replicas)
                assert (after.leader, after.isr, after.is_reassigning) == (before.leader, before.isr, False)
                assert removed(after) == set(moving.adding_replicas)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_second_target_ends_like_a_first_one(size: int) -> None:
    for before in partitions(size):
        if before.isr != before.replicas or before.leader != 1:
            continue
        for first in targets():
            moving = begin(before, first)
            if not moving.is_reassigning:
                continue
            for second in targets():
                direct, after = begin(before, second), begin(moving, second)
                assert set(after.replicas) == set(direct.replicas)
                assert set(after.adding_replicas) == set(direct.adding_replicas)
                assert set(after.removing_replicas) == set(direct.removing_replicas)
                assert target_of(after) == second
                assert (after.leader, set(after.isr)) == (direct.leader, set(direct.isr))
                assert removed(after) == set(moving.replicas) - set(after.replicas)
