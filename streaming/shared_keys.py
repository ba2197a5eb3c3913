"""Under which keys the events for all shards reach each of Spark's partitions once."""

from collections.abc import Callable

from pyspark.sql import SparkSession

from streaming.fan_out import SHARED

# As Spark spreads a stateful operator's keys: a part of every checkpoint, so it stays.
_SEED = 42


def shared_keys(session: SparkSession, partitions: int) -> tuple[int, ...]:
    """Give a negative key for each of ``partitions``: a partition is worked in the order of keys, so it comes first."""
    # The JVM is asked by name, which no stub knows.
    murmur3 = session._jvm.org.apache.spark.unsafe.hash.Murmur3_x86_32  # type: ignore[union-attr]
    return _keys(partitions, lambda key: int(murmur3.hashInt(key, _SEED)))


def _keys(partitions: int, hash_of: Callable[[int], int]) -> tuple[int, ...]:
    if partitions == 1:
        return (SHARED,)
    found: dict[int, int] = {}
    key = SHARED
    while len(found) < partitions:
        found.setdefault(hash_of(key) % partitions, key)
        key -= 1
    return tuple(found[partition] for partition in sorted(found))
