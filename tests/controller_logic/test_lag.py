"""When a follower has caught up: to its leader's end now, or to the end at its own previous report."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from controller_logic.lag import is_caught_up, leader_end_offset, with_log_ends
from state.partition import Partition, PartitionState, ReplicaLag, ReplicaState

DUO = Partition(
    0,
    PartitionState.OnlinePartition,
    (1, 2),
    (ReplicaState.OnlineReplica,) * 2,
    isr=(1,),
    leader=1,
    leader_epoch=4,
    partition_epoch=4,
)
LAG_TIME_MAX_MS = 100


def after(*reports: tuple[int, int, int], partition: Partition = DUO) -> Partition:
    """Return the partition after reports (broker, end, time in ms), in order."""
    for broker, end, time_ms in reports:
        partition = with_log_ends(partition, [(partition.replicas.index(broker), end)], time_ms)
    return partition


@settings(deadline=None)
@given(st.lists(st.lists(st.tuples(st.sampled_from([1, 2]), st.integers(0, 12)), max_size=5), max_size=4))
def test_reports_count_the_same_together_and_one_by_one(groups: list[list[tuple[int, int]]]) -> None:
    together = one_by_one = DUO
    for time_ms, reports in enumerate(groups):
        one_by_one = after(*[(*one, time_ms) for one in reports], partition=one_by_one)
        placed = [(DUO.replicas.index(broker), end) for broker, end in reports]
        together = with_log_ends(together, placed, time_ms) if reports else together
    assert together == one_by_one


@pytest.mark.parametrize(
    ("reports", "caught_up_time_ms"),
    [
        ([(2, 9, 10)], -1),
        ([(1, 9, 5), (2, 8, 10)], -1),
        ([(1, 9, 5), (2, 9, 10)], 10),
        ([(1, 9, 5), (2, 12, 10)], 10),
        ([(1, 9, 5), (2, 8, 10), (1, 12, 15), (2, 9, 20)], 10),
        ([(1, 9, 5), (2, 8, 10), (1, 12, 15), (2, 8, 20)], -1),
        ([(1, 9, 5), (2, 9, 10), (1, 12, 15), (2, 8, 20)], 10),
        ([(2, 8, 10), (1, 9, 15), (2, 8, 20)], -1),
        ([(2, 8, 10), (1, 9, 15), (2, 8, 20), (1, 12, 25), (2, 9, 30)], 20),
        ([(1, 9, 5), (2, 4, 10), (1, 6, 15), (2, 5, 20), (1, 12, 25), (2, 8, 30)], -1),
        ([(1, 9, 5), (2, 9, 10), (2, 9, 40)], 40),
        # The leader's end goes back after the follower had caught up with it.
        ([(1, 9, 5), (2, 9, 10), (1, 6, 15), (2, 5, 20), (1, 12, 25), (2, 8, 30)], 10),
        ([(1, 9, 5), (2, 9, 10), (1, 6, 15), (2, 6, 20), (1, 5, 22), (2, 4, 25), (1, 12, 28), (2, 8, 30)], 20),
        # The previous report was in this millisecond, or in what is the future again.
        ([(1, 9, 5), (2, 8, 10), (1, 12, 10), (2, 9, 10)], 10),
        ([(1, 9, 5), (2, 9, 10), (1, 12, 15), (2, 8, 50), (1, 15, 18), (2, 12, 20)], 10),
    ],
)
def test_a_follower_has_caught_up_at_a_time(reports: list[tuple[int, int, int]], caught_up_time_ms: int) -> None:
    assert after(*reports).lags[1].caught_up_time_ms == caught_up_time_ms


@pytest.mark.parametrize(("now_ms", "expected"), [(10, True), (110, True), (111, False)])
def test_catching_up_counts_for_a_while(now_ms: int, expected: bool) -> None:
    partition = after((1, 9, 5), (2, 9, 10), (1, 12, 15))
    assert is_caught_up(partition, 1, now_ms, LAG_TIME_MAX_MS) == expected


def test_a_follower_at_its_leaders_end_is_always_caught_up() -> None:
    assert is_caught_up(after((1, 9, 5), (2, 9, 10)), 1, 10_000, LAG_TIME_MAX_MS)


def test_a_follower_that_never_caught_up_is_behind_even_at_time_zero() -> None:
    assert not is_caught_up(after((1, 9, 5), (2, 8, 10)), 1, 20, LAG_TIME_MAX_MS)


def test_nothing_of_an_earlier_leader_epoch_counts() -> None:
    older = after((1, 9, 5), (2, 9, 10))
    partition = replace(older, leader_epoch=5)
    assert leader_end_offset(partition) == -1
    assert not is_caught_up(partition, 1, 10, LAG_TIME_MAX_MS)
    told = after((1, 12, 20), (2, 9, 30), partition=partition)
    assert told.lags[1] == ReplicaLag(-1, 30, 12)


def test_a_leader_alone_keeps_no_lag() -> None:
    assert after((1, 9, 5)).lags == ()


def test_a_follower_whose_lag_was_never_kept_has_caught_up_by_its_end_alone() -> None:
    """A state that was stored before lags existed has such followers."""
    for end, is_there in ((9, True), (5, False)):
        partition = replace(after((1, 9, 0), (2, end, 0)), lags=())
        assert is_caught_up(partition, 1, 0, LAG_TIME_MAX_MS) == is_there
