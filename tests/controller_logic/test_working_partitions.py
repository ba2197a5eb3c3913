"""Partitions that stay bytes show a rule the same as partitions in memory."""

from hypothesis import given, settings
from hypothesis import strategies as st

from controller_logic.working_partitions import WorkingPartitions
from state.packed import pack
from state.partition import Partition, PartitionState, ReplicaState, TopicState
from state.slices import StoredSlice
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
    first = StoredSlice("t", "id", TopicState.created, {}, False, len(held), 0, pack(held))
    return WorkingPartitions(StoredPartitions(first, lambda nth: None))


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
