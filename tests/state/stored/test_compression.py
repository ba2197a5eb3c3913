"""Large pages are stored compressed, and read by everyone who reads pages."""

import msgspec
import pytest
from msgspec.structs import replace

from state.level import FIRST_LEVEL, NEWEST_LEVEL
from state.partition import Topic, TopicState
from state.stored import codec
from state.stored.codec import (
    COMPRESSED_BYTES_MIN,
    CodecError,
    decode_cluster,
    decode_slices,
    encode_cluster,
    encode_slices,
    holds_the_same,
)
from state.stored.slices import slices_of
from tests.state.stored.test_codec import BROKER, CLUSTER, PARTITION

TOPICS = [
    Topic(name, f"id of {name}", TopicState.created, {}, tuple(replace(PARTITION, partition=n) for n in range(200)))
    for name in ("orders", "payments")
]
SLICES = [one for topic in TOPICS for one in slices_of(topic)]
UNCOMPRESSED_BYTES = len(msgspec.msgpack.encode(SLICES))
every_level = pytest.mark.parametrize("level", range(FIRST_LEVEL, NEWEST_LEVEL + 1))


@every_level
def test_a_large_page_is_compressed_and_a_small_one_is_not(level: int) -> None:
    small = [one for topic in TOPICS for one in slices_of(replace(topic, partitions=topic.partitions[:3]))]
    assert encode_slices(small, level)[1] == 0
    large = encode_slices(SLICES, level)
    # The second number is how it is compressed. A release that supports only level 1 knows zlib (1) alone.
    assert (large[0], large[1]) == (level, level)
    assert len(large) < COMPRESSED_BYTES_MIN / 2 < UNCOMPRESSED_BYTES / 2


@every_level
def test_a_compressed_page_is_read_back(level: int) -> None:
    assert decode_slices(encode_slices(SLICES, level)) == SLICES


def test_pages_of_both_levels_hold_the_same() -> None:
    pages = [encode_slices(SLICES, level) for level in (FIRST_LEVEL, NEWEST_LEVEL)]
    assert pages[0] != pages[1]
    assert holds_the_same(*pages)
    assert not holds_the_same(pages[0], encode_slices(SLICES[:1], NEWEST_LEVEL))


@every_level
def test_a_cluster_part_with_many_brokers_is_compressed(level: int) -> None:
    small = replace(CLUSTER, level=level)
    cluster = replace(small, brokers={broker: replace(BROKER, broker=broker) for broker in range(1_000)})
    assert tuple(encode_cluster(cluster)[:2]) == (level, level)
    assert decode_cluster(encode_cluster(cluster)) == cluster
    assert decode_cluster(encode_cluster(small)) == small
    with pytest.raises(CodecError):
        decode_cluster(encode_cluster(cluster)[:-9])


@every_level
@pytest.mark.parametrize("kept", [1, 3, 5, 20, -1])
def test_a_page_that_was_cut_off_is_refused(kept: int, level: int) -> None:
    with pytest.raises(CodecError):
        decode_slices(encode_slices(SLICES, level)[:kept])


@every_level
def test_no_damaged_byte_is_read_as_something_else(level: int) -> None:
    page = encode_slices(SLICES, level)
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


@every_level
def test_a_page_takes_no_more_memory_than_the_largest_one(level: int, monkeypatch: pytest.MonkeyPatch) -> None:
    page = encode_slices(SLICES, level)
    monkeypatch.setattr(codec, "PAGE_BYTES_MAX", UNCOMPRESSED_BYTES)
    assert decode_slices(page) == SLICES
    monkeypatch.setattr(codec, "PAGE_BYTES_MAX", UNCOMPRESSED_BYTES - 1)
    with pytest.raises(CodecError, match="does not end"):
        decode_slices(page)
