"""Partitions stay the bytes that they are until they are asked for, and are found without reading the others."""

from itertools import product

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from state.partition import Partition, PartitionState, RemovedReplica, ReplicaState, Topic, TopicState
from state.stored.codec import CodecError, decode_slices, encode_slices, partitions_in
from state.stored.packed import (
    PackedPartitions,
    Unpacked,
    column_of,
    is_moving,
    numbers_in,
    pack,
    partitions_of,
    texts_of,
)
from state.stored.slices import SLICE_PARTITIONS, Slice, slices_of
from state.stored.stored_partitions import StoredPartitions
from tests.state.stored.test_codec import PAGE, PARTITION

ONLINE, STARTED = ReplicaState.OnlineReplica, ReplicaState.ReplicaDeletionStarted


def partition(
    number: int,
    *replicas: int,
    adding: tuple[int, ...] = (),
    removing: tuple[int, ...] = (),
    removed: tuple[int, ...] = (),
) -> Partition:
    return Partition(
        number,
        PartitionState.OnlinePartition,
        replicas,
        (ONLINE,) * len(replicas),
        replicas,
        replicas[0] if replicas else -1,
        adding_replicas=adding,
        removing_replicas=removing,
        removed=tuple(RemovedReplica(broker, 0, STARTED) for broker in removed),
    )


# A busy machine may stop in the middle of an example.
SLOW_MACHINE = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
ids = st.lists(st.sampled_from([0, 1, 2, 255, 256, 70_000, 2**31 - 1]), unique=True, max_size=4).map(tuple)
moves = st.sampled_from(["", "adding", "removing"])
lists = st.lists(st.tuples(ids, ids.map(lambda some: some[:1]), moves), max_size=12)


def made(drawn: list[tuple[tuple[int, ...], tuple[int, ...], str]]) -> list[Partition]:
    return [
        partition(number, *replicas, removed=removed, **({move: replicas[:1]} if move else {}))
        for number, (replicas, removed, move) in enumerate(drawn)
    ]


@SLOW_MACHINE
@given(lists)
def test_what_is_packed_is_read_back_one_by_one_and_all_at_once(drawn: list) -> None:
    held = made(drawn)
    packed = msgspec.msgpack.decode(msgspec.msgpack.encode(pack(held)), type=PackedPartitions)
    unpacked = Unpacked(packed)
    assert [unpacked.at(place) for place in reversed(range(len(held)))] == held[::-1]
    assert list(Unpacked(packed).all()) == Unpacked(packed).some(range(len(held))) == held
    texts = texts_of(packed)
    assert texts == [pack([one]).body for one in held]
    assert partitions_of(texts[1:]) == tuple(held[1:])


@SLOW_MACHINE
@given(lists, st.sets(st.sampled_from([0, 1, 255, 256, 70_000, 2**31 - 1])))
def test_the_partitions_on_brokers_and_those_that_move_are_found(drawn: list, brokers: set[int]) -> None:
    held = made(drawn)
    found = Unpacked(pack(held)).on(brokers)
    moving = [bool(one.adding_replicas or one.removing_replicas or one.removed) for one in held]
    assert [is_moving(one) for one in held] == moving
    wanted = [one.partition for one in held if brokers.intersection(one.replicas) or moving[one.partition]]
    assert found == sorted(set(found))
    assert set(wanted) <= set(found)
    # A partition without replicas may be found for broker 0.
    assert all(held[place].partition in wanted or not held[place].replicas for place in found)


@SLOW_MACHINE
@given(lists, lists, st.data())
def test_changed_partitions_are_written_as_if_all_were(drawn: list, others: list, data: st.DataObject) -> None:
    held, after = made(drawn), made(others)
    chosen = data.draw(st.sets(st.sampled_from(range(len(held))))) if held else set()
    changed = {one.partition: one for one in after if one.partition in chosen}
    # More partitions follow those that there were.
    changed |= {one.partition: one for one in after[len(held) :]}
    merged = [changed.get(number, one) for number, one in enumerate(held)] + after[len(held) :]
    assert Unpacked(pack(held)).with_changes(changed) == pack(merged)


CHANGES: dict[str, dict[str, object]] = {
    "nothing": {},
    "another leader": {"leader": 2},
    "no leader": {"leader": -1},
    "a replica to add": {"adding_replicas": (3,)},
    "a replica to remove": {"removing_replicas": (3,)},
    "a removed replica": {"removed": (RemovedReplica(4, 0, STARTED),)},
    "another order": {"replicas": (2, 1, 3)},
    "fewer replicas": {"replicas": (1, 2)},
}


@pytest.mark.parametrize(("before", "after"), list(product(CHANGES, repeat=2)))
def test_one_change_is_written_as_if_all_were(before: str, after: str) -> None:
    held = [partition(number, 1, 2, 3) for number in range(4)]
    held[2] = replace(held[2], **CHANGES[before])
    changed = replace(partition(2, 1, 2, 3), **CHANGES[after])
    assert Unpacked(pack(held)).with_changes({2: changed}) == pack([*held[:2], changed, held[3]])


def test_changes_in_any_order_are_written_in_the_order_of_the_partitions() -> None:
    held = [partition(number, 1, 2, 3) for number in range(4)]
    after = [replace(one, leader_epoch=10**one.partition) for one in (*held, partition(4, 1), partition(5, 2))]
    for last in (4, 5, 6):
        changed = {one.partition: one for one in reversed(after[1:last])}
        assert Unpacked(pack(held)).with_changes(changed) == pack([held[0], *after[1:last]])


def test_partitions_that_move_are_found_among_the_others_in_order() -> None:
    held = [partition(number, 1 if number == 992 else 2) for number in range(SLICE_PARTITIONS)]
    held[9] = replace(held[9], adding_replicas=(3,))
    assert Unpacked(pack(held)).on({1}) == [9, 992]


led = st.lists(st.tuples(ids.filter(bool), st.integers(0, 4)), max_size=12)


def led_by(drawn: list[tuple[tuple[int, ...], int]]) -> list[Partition]:
    """Make partitions, each led by one of its replicas or by none."""
    return [
        replace(partition(number, *replicas), leader=(*replicas, -1)[nth % (len(replicas) + 1)])
        for number, (replicas, nth) in enumerate(drawn)
    ]


@SLOW_MACHINE
@given(led, led)
def test_leaders_are_told_without_reading_a_partition(drawn: list, others: list) -> None:
    held, after = led_by(drawn), led_by(others)[: len(drawn)]
    merged = [*after, *held[len(after) :]]
    unpacked = Unpacked(pack(held))
    changed = unpacked.with_changes({one.partition: one for one in after})
    assert list(unpacked.leaderships()) == [(one.replicas[0], one.leader) for one in held]
    assert list(Unpacked(changed).leaderships()) == [(one.replicas[0], one.leader) for one in merged]
    assert changed == pack(merged)


def test_a_partition_that_was_read_stays_the_same_object() -> None:
    unpacked = Unpacked(pack([partition(number, 1, 2) for number in range(5)]))
    third = unpacked.at(3)
    assert unpacked.all()[3] is unpacked.some([2, 3])[1] is unpacked.at(3) is third


@pytest.mark.parametrize("numbers", [[], [0], [255, 1], [256], [2**16 - 1], [1, 2**16], [2**32 - 1]])
def test_a_column_is_read_back(numbers: list[int]) -> None:
    assert list(numbers_in(column_of(numbers), len(numbers))) == numbers
    width = 1 if max(numbers, default=0) < 2**8 else 2 if max(numbers) < 2**16 else 4
    assert len(column_of(numbers)) == width * len(numbers)


@pytest.mark.parametrize(("column", "count"), [(b"\0\0\0", 1), (b"\0", 0), (b"", 1), (b"\0\0\0", 2)])
def test_a_column_of_another_length_is_refused(column: bytes, count: int) -> None:
    with pytest.raises(ValueError, match="no column of"):
        numbers_in(column, count)


@pytest.mark.parametrize("cut", [1, 20, 60])
def test_a_page_that_is_cut_short_is_refused(cut: int) -> None:
    with pytest.raises(CodecError):
        decode_slices(encode_slices(PAGE)[:-cut])


def test_columns_that_do_not_fit_are_refused() -> None:
    with pytest.raises(CodecError):
        partitions_in(replace(PAGE[0], partitions=replace(pack([PARTITION]), count=2)))
    with pytest.raises(ValueError, match="3 bytes are no column"):
        texts_of(replace(pack([PARTITION]), lengths=b"\1\2\3"))


# The partitions of a stored topic

LARGE = Topic("t", "id", TopicState.created, {}, tuple(partition(n, n % 7, 7 + n % 5) for n in range(2_500)))


class Slices(dict[int, Slice]):
    """The slices of a topic, which note those that are asked for."""

    def __init__(self, topic: Topic) -> None:
        super().__init__(enumerate(slices_of(topic)))
        self.asked: list[int] = []

    def load(self, nth: int) -> Slice | None:
        self.asked.append(nth)
        return self.get(nth)


def test_only_the_slice_of_a_partition_is_loaded() -> None:
    slices = Slices(LARGE)
    partitions = StoredPartitions(slices[0], slices.load)
    assert partitions[2_499] == LARGE.partitions[2_499]
    assert partitions[-1] is partitions[2_499]
    assert partitions[3] == LARGE.partitions[3]
    assert slices.asked == [2]
    assert len(partitions) == 2_500
    assert partitions[998:1_002] == LARGE.partitions[998:1_002]
    assert partitions[0] is partitions[-2_500]
    assert partitions.some([2_499, 0, 1_000]) == [LARGE.partitions[n] for n in (2_499, 0, 1_000)]
    assert partitions == LARGE.partitions
    assert partitions != LARGE.partitions[:-1]
    assert partitions != 2_500
    for beyond in (2_500, -2_501):
        with pytest.raises(IndexError):
            partitions[beyond]


def test_leaders_are_told_from_all_slices() -> None:
    slices = Slices(LARGE)
    found = StoredPartitions(slices[0], slices.load).leaderships()
    assert list(found) == [(one.replicas[0], one.leader) for one in LARGE.partitions]


def test_partitions_are_found_in_all_slices() -> None:
    slices = Slices(LARGE)
    found = StoredPartitions(slices[0], slices.load).on({3, 11})
    assert found == [one for one in LARGE.partitions if {3, 11}.intersection(one.replicas)]


def test_a_slice_that_is_missing_is_an_error() -> None:
    slices = Slices(LARGE)
    del slices[1]
    with pytest.raises(ValueError, match="2500 partitions has no slice 1"):
        StoredPartitions(slices[0], slices.load)[SLICE_PARTITIONS]
