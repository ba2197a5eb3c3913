"""What a shard counts, and what it shows of the cluster."""

from typing import Any

import pytest
from msgspec.structs import replace

from state.cluster import Cluster, Totals, counted
from state.ids import NO_TIME
from state.partition import Partition, PartitionState, ReplicaState

GOOD = Partition(
    0, PartitionState.OnlinePartition, (1, 2, 3), (ReplicaState.OnlineReplica,) * 3, isr=(1, 2, 3), leader=1
)


@pytest.mark.parametrize(
    ("fields", "min_isr", "names"),
    [
        ({}, 1, set()),
        ({}, 3, {"at_min_isr"}),
        # More than there are replicas means all of them.
        ({}, 4, {"at_min_isr"}),
        ({"isr": (1, 2)}, 1, {"under_replicated"}),
        ({"isr": (1, 2)}, 2, {"under_replicated", "at_min_isr"}),
        ({"isr": (1, 2)}, 4, {"under_replicated", "under_min_isr"}),
        ({"leader": 2}, 1, {"not_preferred"}),
        ({"leader": -1}, 1, {"offline"}),
        ({"adding_replicas": (3,), "isr": (1, 2)}, 1, {"reassigning"}),
        ({"adding_replicas": (3,), "isr": (1,)}, 1, {"reassigning", "under_replicated", "at_min_isr"}),
        ({"removing_replicas": (3,)}, 1, {"reassigning"}),
    ],
)
def test_a_partition_is_counted(fields: dict[str, Any], min_isr: int, names: set[str]) -> None:
    totals = Totals(0, *counted(replace(GOOD, **fields), min_isr))
    assert totals == Totals(partitions=1, replicas=3, **dict.fromkeys(names, 1))


def test_totals_are_added() -> None:
    one, other = Totals(9, 8, 7, 6, 5, 4, 3, 2, 1), Totals(*[1] * 9)
    assert one + other == Totals(10, 9, 8, 7, 6, 5, 4, 3, 2)


def test_the_clocks_skew_is_known_from_the_first_tick_on() -> None:
    assert Cluster(clock_ms=70, clock_entered_ms=NO_TIME).clock_skew_ms is None
    assert Cluster(clock_ms=70, clock_entered_ms=50).clock_skew_ms == 20
