"""A partition that knows its replicas' directories takes more bytes, and keeps them in every encoding."""

from pathlib import Path

import msgspec
import pytest
from msgspec.structs import astuple, replace

from state.codec import decode_slices, decode_stored, decode_topics, encode_stored, encode_topics
from state.columns import column_of
from state.log_directory import LOST, MIGRATING, is_online
from state.packed import Unpacked, pack
from state.partition import Partition, Topic, TopicState
from state.placed_partition import PlacedPartition, changed_directories, directories_of, directory_of, placed
from state.slices import Slice, stored
from tests.state.test_codec import LAST_GROWN_PARTITION

GOLDEN = Path(__file__).parents[1] / "golden" / "topics-v4-directories.bin"
PLAIN = [replace(LAST_GROWN_PARTITION, partition=number) for number in range(12)]
PLACED = placed(PLAIN[5], ("A", "", "B"))
MIXED = [*PLAIN[:5], PLACED, *PLAIN[6:]]


def test_a_partition_is_placed_and_plain_again() -> None:
    assert isinstance(PLACED, PlacedPartition)
    assert (directories_of(PLACED), directory_of(PLACED, 3), directory_of(PLACED, 1)) == (("A", "", "B"), "A", "")
    assert placed(PLACED, ("", "", "")) == PLAIN[5]
    assert type(placed(PLACED, ())) is Partition
    assert changed_directories(PLAIN[5], PLACED) == {3: "A", 2: "B"}


def test_only_a_placed_partition_takes_more_bytes() -> None:
    plain, mixed = pack(PLAIN), pack(MIXED)
    assert len(mixed.body) - len(plain.body) == len(pack([PLACED]).body) - len(pack([PLAIN[5]]).body) > 0
    assert Unpacked(plain).with_changes({5: PLACED}) == mixed
    assert Unpacked(mixed).with_changes({5: PLAIN[5]}) == plain


def test_packed_partitions_are_read_in_every_way() -> None:
    assert [Unpacked(pack(MIXED)).at(place) for place in range(12)] == MIXED
    assert list(Unpacked(pack(MIXED)).all()) == MIXED == Unpacked(pack(MIXED)).some(range(12))


@pytest.mark.parametrize("online", [(), ("A", "B")])
def test_a_replica_is_online_in_a_directory_that_its_broker_can_read(online: tuple[str, ...]) -> None:
    assert [is_online(directory, online) for directory in ("", MIGRATING, "A")] == [True] * 3
    assert not is_online(LOST, online)
    assert is_online("C", online) == (not online)


def test_a_page_of_topics_with_and_without_directories_is_read_back() -> None:
    placed_topic = Topic("t", "id", TopicState.created, {}, tuple(MIXED))
    plain_topic = Topic("u", "id", TopicState.created, {}, tuple(PLAIN))
    assert decode_topics(encode_topics([placed_topic, plain_topic])) == [placed_topic, plain_topic]
    part = Slice(replace(placed_topic, partitions=tuple(MIXED[5:])))
    assert decode_slices(encode_stored([stored(part)])) == [part]


@pytest.mark.parametrize("count", [6, 12])
def test_a_topic_keeps_its_directories_in_every_encoding(count: int) -> None:
    topic = Topic("t", "id", TopicState.created, {}, tuple(MIXED[:count]))
    whole = Slice(topic, count)
    assert decode_topics(encode_topics([topic])) == [topic]
    assert decode_slices(encode_stored([stored(whole)])) == [whole]
    assert decode_slices(encode_stored(decode_stored(encode_topics([topic])))) == [whole]


def test_directories_that_were_stored_are_read_whatever_fields_a_partition_has_by_now() -> None:
    [topic] = decode_topics(GOLDEN.read_bytes())
    assert [directories_of(partition) for partition in topic.partitions] == [directories_of(one) for one in MIXED]
    assert topic.partitions == tuple(MIXED)


def test_a_partition_with_one_more_field_is_not_taken_for_one_with_directories() -> None:
    class Grown(Partition, frozen=True, array_like=True, gc=False):
        """A partition of a later version."""

        one_more: tuple[str, ...] = ("x",)

    grown = msgspec.msgpack.encode(Grown(*astuple(PLAIN[5])))
    assert len(grown) > len(pack([PLAIN[5]]).body)
    packed = pack([PLAIN[5]])
    later = replace(packed, body=grown, lengths=column_of([len(grown)]))
    assert Unpacked(later).at(0) == PLAIN[5]
    assert type(Unpacked(later).at(0)) is Partition
