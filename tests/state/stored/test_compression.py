"""Large pages are stored compressed, and read by everyone who reads pages."""

import pytest
from msgspec.structs import replace

from state.partition import Topic, TopicState
from state.stored import codec
from state.stored.codec import (
    COMPRESSED_BYTES_MIN,
    CodecError,
    compressed,
    decode_cluster,
    decode_slices,
    decompressed,
    encode_cluster,
    encode_slices,
)
from state.stored.slices import slices_of
from tests.state.stored.test_codec import BROKER, CLUSTER, PARTITION

TOPICS = [
    Topic(name, f"id of {name}", TopicState.created, {}, tuple(replace(PARTITION, partition=n) for n in range(200)))
    for name in ("orders", "payments")
]
SLICES = [one for topic in TOPICS for one in slices_of(topic)]


def test_a_large_page_is_compressed_and_a_small_one_is_not() -> None:
    small = [one for topic in TOPICS for one in slices_of(replace(topic, partitions=topic.partitions[:3]))]
    assert encode_slices(small)[1] == 0
    large = encode_slices(SLICES)
    assert large[1] == 1
    assert len(large) < COMPRESSED_BYTES_MIN / 2 < len(decompressed(large[2:])) / 2


def test_a_compressed_page_is_read_back() -> None:
    assert decode_slices(encode_slices(SLICES)) == SLICES


def test_a_cluster_part_with_many_brokers_is_compressed() -> None:
    cluster = replace(CLUSTER, brokers={broker: replace(BROKER, broker=broker) for broker in range(1_000)})
    assert encode_cluster(cluster)[1] == 1
    assert decode_cluster(encode_cluster(cluster)) == cluster
    assert decode_cluster(encode_cluster(CLUSTER)) == CLUSTER
    with pytest.raises(CodecError):
        decode_cluster(encode_cluster(cluster)[:-9])


@pytest.mark.parametrize("kept", [1, 3, 5, 20, -1])
def test_a_page_that_was_cut_off_is_refused(kept: int) -> None:
    with pytest.raises(CodecError):
        decode_slices(encode_slices(SLICES)[:kept])


def test_no_damaged_byte_is_read_as_something_else() -> None:
    page = encode_slices(SLICES)
    refused = 0
    for place in range(1, len(page)):
        damaged = page[:place] + bytes([page[place] ^ 0x5A]) + page[place + 1 :]
        try:
            # The same bytes may be compressed in more than one way.
            assert decode_slices(damaged) == SLICES
        except CodecError:
            refused += 1
    assert refused > len(page) * 0.99
    with pytest.raises(CodecError):
        decode_slices(page + b"more")


def test_a_page_takes_no_more_memory_than_the_largest_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "PAGE_BYTES_MAX", 1_000)
    assert decompressed(compressed(bytes(1_000))) == bytes(1_000)
    with pytest.raises(ValueError, match="does not end"):
        decompressed(compressed(bytes(1_001)))
