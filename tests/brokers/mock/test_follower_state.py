"""When a follower had all that its leader has, as its fetches show it (``Replica.updateFetchStateOrThrow``)."""

import pytest

from brokers.mock.replicas.follower import UNKNOWN, FollowerState


@pytest.mark.parametrize(
    ("fetches", "caught_up_ms"),
    [
        # Each fetch: its offset, the end of the leader's log, the time.
        ([], 5),
        ([(9, 10, 20)], 5),
        ([(10, 10, 20)], 20),
        ([(12, 10, 20)], 20),
        # From where the end was at the fetch before.
        ([(9, 10, 20), (10, 12, 30)], 20),
        ([(9, 10, 20), (9, 12, 30)], 5),
        ([(9, 10, 20), (11, 12, 30), (12, 15, 40)], 30),
        # The clock went back.
        ([(10, 10, 20), (10, 10, 15)], 20),
        ([(10, 10, 20), (9, 10, 15), (10, 12, 30)], 20),
    ],
)
def test_a_follower_had_caught_up_at_a_time(fetches: list[tuple[int, int, int]], caught_up_ms: int) -> None:
    state = FollowerState(5)
    for offset, leader_end_offset, now_ms in fetches:
        state.fetched(offset, leader_end_offset, 7, now_ms)
    assert state.caught_up_ms == caught_up_ms
    last = (fetches[-1][0], 7) if fetches else (UNKNOWN, UNKNOWN)
    assert (state.log_end_offset, state.replica_epoch) == last


def test_a_follower_counts_as_caught_up_for_a_while_or_at_the_leaders_end() -> None:
    state = FollowerState(100)
    assert state.is_caught_up(10, 130, lag_max_ms=30)
    assert not state.is_caught_up(10, 131, lag_max_ms=30)
    state.fetched(10, 12, UNKNOWN, 110)
    assert state.is_caught_up(10, 9_000, lag_max_ms=30)
