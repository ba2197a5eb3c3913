"""Large pages are stored compressed, and read by everyone who reads pages."""

import pytest
from msgspec.structs import replace

from state import compression
from state.codec import (
    CodecError,
    decode_cluster,
    decode_slices,
    decode_stored,
    decode_topics,
    encode_cluster,
    encode_stored,
    joined_topics,
)
from state.compression import COMPRESSED_BYTES_MIN, compressed, decompressed
from state.partition import Topic, TopicState
from state.slices import Slice, read, stored
from tests.state.test_codec import BROKER, CLUSTER, GOLDEN, PARTITION

TOPICS = [
    Topic(name, f"id of {name}", TopicState.created, {}, tuple(replace(PARTITION, partition=n) for n in range(200)))
    for name in ("orders", "payments")
]
SLICES = [stored(Slice(topic, len(topic.partitions))) for topic in TOPICS]
FILE = "topics-v4-compressed.bin"


def test_a_large_page_is_compressed_and_a_small_one_is_not() -> None:
    small = [stored(Slice(replace(topic, partitions=topic.partitions[:3]), 3)) for topic in TOPICS]
    assert encode_stored(small)[:1] == b"\3"
    large = encode_stored(SLICES)
    assert large[:1] == b"\4"
    assert len(large) < COMPRESSED_BYTES_MIN / 2 < len(decompressed(large[1:])) / 2


def test_a_compressed_page_is_read_in_every_way() -> None:
    page = encode_stored(SLICES)
    assert decode_stored(page) == SLICES
    assert [one.topic for one in decode_slices(page)] == TOPICS
    assert decode_topics(page) == joined_topics([page]) == TOPICS


def test_a_cluster_part_with_many_brokers_is_compressed() -> None:
    cluster = replace(CLUSTER, brokers={broker: replace(BROKER, broker=broker) for broker in range(1_000)})
    assert encode_cluster(cluster)[:1] == b"\4"
    assert decode_cluster(encode_cluster(cluster)) == cluster
    assert decode_cluster(encode_cluster(CLUSTER)) == CLUSTER
    with pytest.raises(CodecError):
        decode_cluster(encode_cluster(cluster)[:-9])


def test_a_page_that_an_earlier_version_compressed_is_read() -> None:
    assert [read(one).topic for one in decode_stored((GOLDEN / FILE).read_bytes())] == TOPICS


@pytest.mark.parametrize("kept", [1, 3, 5, 20, -1])
def test_a_page_that_was_cut_off_is_refused(kept: int) -> None:
    for reading in (decode_stored, decode_slices, decode_topics):
        with pytest.raises(CodecError):
            reading(encode_stored(SLICES)[:kept])


def test_every_damaged_byte_is_found() -> None:
    page = encode_stored(SLICES)
    for place in range(1, len(page)):
        damaged = page[:place] + bytes([page[place] ^ 0x5A]) + page[place + 1 :]
        with pytest.raises(CodecError):
            decode_slices(damaged)
    with pytest.raises(CodecError):
        decode_slices(page + b"more")


def test_a_page_takes_no_more_memory_than_the_largest_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "PAGE_BYTES_MAX", 1_000)
    assert decompressed(compressed(bytes(1_000))) == bytes(1_000)
    with pytest.raises(ValueError, match="does not end"):
        decompressed(compressed(bytes(1_001)))
