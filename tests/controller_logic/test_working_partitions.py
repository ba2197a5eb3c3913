"""Partitions that stay bytes show a rule the same as partitions in memory."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller_logic.working_partitions import WorkingPartitions
from state.packed import pack
from state.partition import Partition, PartitionState, ReplicaState, TopicState
from state.slices import Slice
from state.stored_partitions import StoredPartitions

replicas = st.lists(st.integers(0, 5), unique=True, min_size=1, max_size=3).map(tuple)
# Replicas, the place of the leader or none, and whether it is being reassigned.
lists = st.lists(st.tuples(replicas, st.integers(0, 3), st.booleans()), max_size=8)


def made(drawn: list[tuple[tuple[int, ...], int, bool]]) -> tuple[Partition, ...]:
    return tuple(
        Partition(
            number,
            PartitionState.OnlinePartition,
            ids,
            (ReplicaState.OnlineReplica,) * len(ids),
            ids,
            (*ids, -1)[nth % (len(ids) + 1)],
            adding_replicas=ids[:1] if moves else (),
        )
        for number, (ids, nth, moves) in enumerate(drawn)
    )


def stored(held: tuple[Partition, ...]) -> WorkingPartitions:
    first = Slice("t", "id", TopicState.created, {}, False, len(held), 0, pack(held))
    return WorkingPartitions(StoredPartitions(first, lambda nth: None))


# Of five partitions the third and the fourth are changed, and a sixth is appended.
HELD = made([((1, 2), 0, False), ((2, 3), 0, True), ((3, 1), 1, False), ((3, 4), 0, True), ((4, 5), 0, False)])
AFTER = made([((1,), 0, False)] * 2 + [((3, 5), 0, True), ((3, 4), 0, False), ((4,), 0, False), ((2, 1), 0, False)])
NOW = (*HELD[:2], *AFTER[2:4], HELD[4], AFTER[5])


def changed(partitions: WorkingPartitions) -> WorkingPartitions:
    for number in (5, 3, 2):
        partitions.put(AFTER[number])
    return partitions


@pytest.mark.parametrize("of", [WorkingPartitions, stored])
def test_changed_partitions_are_laid_over_those_that_are_stored(
    of: Callable[[tuple[Partition, ...]], WorkingPartitions],
) -> None:
    partitions = changed(of(HELD))
    assert (len(partitions), tuple(partitions)) == (6, NOW)
    assert ([partitions[n] for n in range(-6, 6)], partitions[1:4]) == ([*NOW, *NOW], NOW[1:4])
    assert partitions.some([5, 6, 0, 2]) == [NOW[5], None, NOW[0], NOW[2]]
    assert partitions == NOW
    assert partitions != HELD
    assert partitions != 6
    with pytest.raises(IndexError):
        partitions[6]


@pytest.mark.parametrize("of", [WorkingPartitions, stored])
def test_unchanged_partitions_are_those_that_are_stored(
    of: Callable[[tuple[Partition, ...]], WorkingPartitions],
) -> None:
    partitions = of(HELD)
    assert (len(partitions), tuple(partitions)) == (5, HELD)
    assert partitions.some([4, 5, 1]) == [HELD[4], None, HELD[1]]
    assert partitions.some([1, 0]) == [HELD[1], HELD[0]]
    assert partitions.some([]) == []


def test_the_stored_partitions_on_a_broker_and_those_that_move_are_found_with_all_that_changed() -> None:
    partitions = stored(HELD)
    assert [one.partition for one in partitions.on({4})] == [1, 3, 4]
    assert [one.partition for one in partitions.moving()] == [1, 3]
    changed(partitions)
    assert list(partitions.on({4})) == [NOW[n] for n in (1, 2, 3, 4, 5)]
    assert list(partitions.moving()) == [NOW[n] for n in (1, 2, 3, 5)]


@pytest.mark.parametrize("of", [WorkingPartitions, stored])
def test_a_later_part_of_a_batch_goes_on_with_the_changes_of_an_earlier_one(
    of: Callable[[tuple[Partition, ...]], WorkingPartitions],
) -> None:
    earlier = changed(of(HELD))
    later = WorkingPartitions(earlier)
    later.put(AFTER[0])
    assert tuple(later) == (AFTER[0], *NOW[1:])
    assert tuple(earlier) == NOW
    assert later.stored is earlier.stored


# A busy machine may stop in the middle of an example.
@settings(max_examples=100, deadline=None)
@given(lists, lists, st.sets(st.integers(0, 7)))
def test_leaderships_are_those_of_the_partitions(drawn: list, others: list, chosen: set[int]) -> None:
    held, after = made(drawn), made(others)
    packed, in_memory = stored(held), WorkingPartitions(held)
    for one in after:
        # Some are changed, and those past the end are appended.
        if one.partition in chosen or one.partition >= len(held):
            packed.put(one)
            in_memory.put(one)
    wanted = [(one.partition, one.replicas[0], one.leader) for one in in_memory if not one.is_reassigning]
    assert list(packed.leaderships()) == list(in_memory.leaderships()) == wanted


def test_a_rule_may_change_the_partition_that_it_has_come_to() -> None:
    held = made([((1, 2), 0, False), ((2, 1), 1, True), ((1, 2), 1, False)])
    for partitions in (stored(held), WorkingPartitions(held)):
        partitions.put(held[2])
        seen = []
        for led in partitions.leaderships():
            seen.append(led.leader)
            partitions.put(held[led.partition])
        assert seen == [1, 2]
