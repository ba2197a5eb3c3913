"""A topic's partitions in slices: a table like a dict, which shares what did not change with the one before it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from brokers.gateways.kraft.metadata.partition_table import Partitions, PartitionState
from brokers.gateways.kraft.metadata.translate import translate
from tests.brokers.gateways.kraft.decisions import EARLIER, ID, OTHER_ID, after, partition, topic


def state(epoch: int) -> PartitionState:
    return PartitionState((1,), ("d",), (1,), (), (), 1, 0, epoch, epoch)


def of(held: dict[int, PartitionState]) -> Partitions:
    opened = Partitions().opened()
    for number, one in held.items():
        opened.set(number, one)
    return opened.closed()


changes = st.lists(st.tuples(st.integers(0, 700), st.integers(0, 5).map(state)), max_size=30)


@given(st.lists(changes, max_size=5))
def test_a_table_holds_what_a_dict_would(rounds: list[list[tuple[int, PartitionState]]]) -> None:
    tables, dicts = [Partitions()], [dict[int, PartitionState]()]
    for given_changes in rounds:
        opened, expected = tables[-1].opened(), dict(dicts[-1])
        for number, one in given_changes:
            opened.set(number, one)
            expected[number] = one
            assert opened.get(number) == one
        assert list(opened.in_order()) == sorted(expected.items())
        tables.append(opened.closed())
        dicts.append(expected)
    for table, expected in zip(tables, dicts, strict=True):
        assert list(table.in_order()) == sorted(expected.items())
        assert (len(table), list(table)) == (len(expected), sorted(expected))
        assert [table.get(number) for number in range(-2, 705)] == [expected.get(number) for number in range(-2, 705)]
        assert all(number in table for number in expected)
        assert table == of(expected)
        assert (table == tables[0]) == (expected == {})


def test_a_partition_that_is_not_there_has_no_state() -> None:
    table = of({3: state(0)})
    with pytest.raises(KeyError):
        table[2]
    assert 2 not in table
    with pytest.raises(ValueError, match="partition -1 cannot be"):
        table.opened().set(-1, state(0))


def test_one_change_shares_everything_else_with_the_image_before_it() -> None:
    other = replace(topic(topic_id=OTHER_ID), topic="u"), replace(partition(topic_id=OTHER_ID), topic="u")
    before = after([*EARLIER[:-1], *[partition(partition=number) for number in range(2_000)], *other])
    image, _ = translate(before, [partition(1, 1, partition=1_000, leader=2)])
    former, present = before.topics[ID].partitions, image.topics[ID].partitions
    assert [number for number in former if former[number] is not present[number]] == [1_000]
    shared = [mine is theirs for mine, theirs in zip(present.slices, former.slices, strict=True)]
    assert (shared.count(False), len(shared)) == (1, 8)
    assert image.topics[OTHER_ID] is before.topics[OTHER_ID]
    assert image.brokers is before.brokers
