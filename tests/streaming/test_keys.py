"""Every partition gets as many shards as any other, and the shared events before its first shard."""

import zlib
from collections import Counter

import pytest

from streaming.keys import SHARED, keys_of, shard_of_key


def hash_of(key: int) -> int:
    return zlib.crc32(b"%d" % key) - (1 << 31)


@pytest.mark.parametrize("partitions", range(1, 20))
@pytest.mark.parametrize("shards", [1, 3, 16, 64])
def test_shards_are_spread_evenly_and_their_numbers_follow_from_their_keys(shards: int, partitions: int) -> None:
    keys = keys_of(shards, partitions, hash_of).shards
    assert [shard_of_key(key, shards) for key in keys] == list(range(shards))
    spread = Counter(hash_of(key) % partitions for key in keys) if partitions > 1 else Counter({0: shards})
    assert set(spread.values()) <= {shards // partitions, -(-shards // partitions)}
    assert sum(spread.values()) == shards


def test_every_partition_gets_one_key_of_shared_events() -> None:
    for partitions in range(2, 20):
        shared = keys_of(16, partitions, hash_of).shared
        assert [hash_of(key) % partitions for key in shared] == list(range(partitions))
        assert all(key < 0 and shard_of_key(key, 16) is None for key in shared)


def test_over_one_partition_a_shards_number_is_its_key() -> None:
    assert keys_of(16, 1, hash_of) == (tuple(range(16)), (SHARED,))
