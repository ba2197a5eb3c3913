"""Each of Spark's partitions gets the shared events before its first shard (on Spark: ``test_replay``)."""

from streaming.shared_keys import keys_of


def test_every_partition_gets_one_key_and_none_is_a_shards() -> None:
    for partitions in range(1, 20):
        keys = keys_of(partitions, lambda key: key * 7_919)
        assert all(key < 0 for key in keys)
        if partitions > 1:
            assert [key * 7_919 % partitions for key in keys] == list(range(partitions))
    assert len(keys_of(1, lambda key: key)) == 1
