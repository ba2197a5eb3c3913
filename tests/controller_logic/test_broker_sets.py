"""The sets of brokers are the same whether they are read of all brokers or changed with each of them."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from controller_logic.broker_sets import BrokerSets, sets_of
from state.broker import Broker, BrokerState
from tests.support.world import World

DIRS = ("a", "b", "c")


def registered() -> Broker:
    world = World(1)
    return world.state.cluster.brokers[1]


A_BROKER = registered()
brokers = st.builds(
    lambda number, state, dirs, offline, is_behind: replace(
        A_BROKER, broker=number, state=state, log_dirs=dirs, offline_log_dirs=offline, is_kraft=is_behind
    ),
    st.integers(1, 4),
    st.sampled_from([state for state in BrokerState if state is not BrokerState.unregistered]),
    st.sampled_from([DIRS[:1], DIRS[:2]]),
    st.sampled_from([(), DIRS[2:]]),
    st.booleans(),
)


@given(changes=st.lists(brokers, max_size=8), gone=st.sets(st.integers(1, 4)))
def test_a_change_of_one_broker_gives_the_sets_of_all(changes: Sequence[Broker], gone: set[int]) -> None:
    held: dict[int, Broker] = {}
    sets = sets_of(())
    for broker in changes:
        held[broker.broker] = broker
        sets = sets.put(broker)
        assert sets == sets_of(held.values())
    for number in gone:
        held.pop(number, None)
        sets = sets.without(number)
    assert sets == sets_of(held.values())


def test_each_set_says_what_its_brokers_may_and_must_do() -> None:
    plain = replace(A_BROKER, broker=1)
    fenced = replace(A_BROKER, broker=2, state=BrokerState.fenced)
    leaving = replace(A_BROKER, broker=3, state=BrokerState.controlled_shutdown)
    away = replace(A_BROKER, broker=4, state=BrokerState.fenced, is_kraft=True)
    one_left = replace(A_BROKER, broker=5, is_kraft=True, log_dirs=DIRS[:1], offline_log_dirs=DIRS[1:])
    several = replace(A_BROKER, broker=6, is_kraft=True, log_dirs=DIRS)
    assert sets_of((plain, fenced, leaving, away, one_left, several)) == BrokerSets(
        active=frozenset({1, 5, 6}),
        live=frozenset({1, 3, 5, 6}),
        reporting=frozenset({1, 3}),
        awaited=frozenset({1, 2, 3, 5, 6}),
        with_dir_left=frozenset({5}),
        choosing_dirs=frozenset({6}),
    )
