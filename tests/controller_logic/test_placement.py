"""Where replicas go."""

from collections import Counter

import pytest

from controller_logic.placement import Start, place, place_registered, start_of, with_rack_of_the_others

SIX = dict.fromkeys(range(6))
RACKS = {0: "a", 1: "b", 2: "c", 3: "a", 4: "b", 5: "c"}


def test_replicas_are_placed_as_in_kafkas_example_without_racks() -> None:
    """AdminUtils' class comment draws this: 5 brokers, 10 partitions, 3 replicas, start 0, shift 0."""
    assert place(dict.fromkeys(range(5)), 10, 3, Start(0, 0)) == [
        (0, 1, 2),
        (1, 2, 3),
        (2, 3, 4),
        (3, 4, 0),
        (4, 0, 1),
        (0, 2, 3),
        (1, 3, 4),
        (2, 4, 0),
        (3, 0, 1),
        (4, 1, 2),
    ]


def test_replicas_are_placed_as_in_kafkas_example_with_racks() -> None:
    """KIP-36: 6 brokers in 3 racks stand as 0,3,1,5,4,2 when racks take turns."""
    racks = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}
    placed = place(racks, 7, 3, Start(0, 0))
    assert [replicas[0] for replicas in placed] == [0, 3, 1, 5, 4, 2, 0]
    assert placed[0] == (0, 3, 1)
    assert placed[6] == (0, 4, 2)


@pytest.mark.parametrize("factor", range(1, 7))
@pytest.mark.parametrize("start", [Start(0, 0), Start(3, 1), Start(65_535, 65_535)])
@pytest.mark.parametrize("racks", [SIX, RACKS, RACKS | {5: None}])
def test_replicas_are_distinct_and_leaders_are_spread_evenly(
    racks: dict[int, str | None], start: Start, factor: int
) -> None:
    placed = place(racks, 60, factor, start)
    assert all(len(set(replicas)) == factor for replicas in placed)
    assert set(Counter(replicas[0] for replicas in placed).values()) == {10}


@pytest.mark.parametrize("factor", [2, 3, 5])
def test_a_partition_uses_every_rack_before_it_uses_one_twice(factor: int) -> None:
    for replicas in place(RACKS, 30, factor, start_of("some-id")):
        assert len({RACKS[replica] for replica in replicas}) == min(3, factor)


def test_racks_of_different_sizes_are_all_used() -> None:
    racks = {0: "a", 1: "a", 2: "a", 3: "a", 4: "b"}
    for replicas in place(racks, 20, 2, Start(1, 2)):
        assert {racks[replica] for replica in replicas} == {"a", "b"}


def test_one_broker_without_a_rack_disables_rack_awareness() -> None:
    assert place(RACKS | {5: None}, 12, 3, Start(2, 1)) == place(SIX, 12, 3, Start(2, 1))


def test_leaders_of_later_partitions_continue_round_robin() -> None:
    assert [replicas[0] for replicas in place(SIX, 4, 3, Start(2, 4), 9)] == [5, 0, 1, 2]


def test_followers_shift_by_one_each_round() -> None:
    rounds = place(SIX, 24, 2, Start(0, 3))[::6]
    assert rounds == [(0, 4), (0, 5), (0, 1), (0, 2)]


def test_topics_start_at_different_places() -> None:
    assert len({start_of(f"topic-{n}").first % 6 for n in range(50)}) == 6


@pytest.mark.parametrize("racks", [SIX, RACKS, RACKS | {5: None}])
@pytest.mark.parametrize("fenced", [{5}, {1, 4}, {0, 2, 3}, {0, 1, 2, 3, 4}])
@pytest.mark.parametrize("factor", range(1, 7))
def test_fenced_brokers_get_replicas_only_after_active_ones(
    racks: dict[int, str | None], fenced: set[int], factor: int
) -> None:
    active = {broker: rack for broker, rack in racks.items() if broker not in fenced}
    away = {broker: rack for broker, rack in racks.items() if broker in fenced}
    placed = place_registered(active, away, 12, factor, Start(4, 1), 3)
    for replicas in placed:
        assert len(set(replicas)) == factor
        assert [replica in fenced for replica in replicas] == sorted(replica in fenced for replica in replicas)
        if None not in racks.values():
            assert len({racks[replica] for replica in replicas}) == min(factor, 3)
    if factor <= len(active) and (None in racks.values() or factor <= len(set(active.values()))):
        assert placed == place(active, 12, factor, Start(4, 1), 3)


def test_fenced_brokers_take_turns() -> None:
    placed = place_registered({0: None}, {1: None, 2: None, 3: None}, 3, 3, Start(0, 0))
    assert placed == [(0, 1, 2), (0, 2, 3), (0, 3, 1)]
    # The last rack comes in turn too, and the second broker of a rack.
    placed = place_registered({0: "a"}, {1: "b", 2: "c", 3: "b"}, 3, 3, Start(0, 0))
    assert placed == [(0, 1, 2), (0, 2, 3), (0, 3, 1)]


def test_of_a_rack_without_an_active_broker_one_broker_comes_before_all_other_fenced_ones() -> None:
    placed = place_registered({0: "a"}, {1: "b", 2: "b", 3: "a"}, 2, 3, Start(0, 0))
    assert placed == [(0, 1, 2), (0, 2, 3)]


@pytest.mark.parametrize("racks", [SIX, RACKS, RACKS | {5: None}])
def test_the_order_in_which_brokers_are_given_does_not_matter(racks: dict[int, str | None]) -> None:
    backwards = dict(reversed(racks.items()))
    assert place(backwards, 12, 3, Start(2, 1)) == place(racks, 12, 3, Start(2, 1))
    active, away = {0: racks[0], 1: racks[1]}, {broker: racks[broker] for broker in range(2, 6)}
    registered = place_registered(active, away, 12, 5, Start(2, 1))
    backwards = dict(reversed(away.items()))
    assert place_registered(active, backwards, 12, 5, Start(2, 1)) == registered


def test_brokers_without_a_rack_are_a_rack_of_their_own() -> None:
    active, fenced = with_rack_of_the_others({0: "a", 1: None, 2: "a", 3: None}, {4: "b", 5: None})
    assert active[1] == active[3] == fenced[5]
    assert len({*active.values(), *fenced.values()}) == 3
    for replicas in place(active, 8, 2, Start(0, 0)):
        assert len({active[replica] for replica in replicas}) == 2


def test_an_empty_name_is_another_rack_than_none() -> None:
    active, _ = with_rack_of_the_others({0: "", 1: None}, {})
    assert active[0] != active[1]


def test_without_any_rack_racks_do_not_count() -> None:
    assert with_rack_of_the_others({0: None, 1: None}, {2: None}) == ({0: None, 1: None}, {2: None})
