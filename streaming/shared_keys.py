"""The keys under which the events for all shards reach each of Spark's partitions once."""

from collections.abc import Callable

from pyspark.sql import SparkSession

from streaming.fan_out import SHARED

# Spark spreads the keys of a stateful operator with this seed. Every checkpoint depends on it, so it cannot change.
_SEED = 42


def shared_keys(session: SparkSession, partitions: int) -> tuple[int, ...]:
    """Return a negative key for each of ``partitions``. Keys are processed in order, so rows of these come first."""
    # An object's method, because the class also has a static one of this name: which of the two py4j finds by name
    # alone depends on the order in which the JVM lists them. The type stubs do not know the JVM's classes.
    murmur3 = session._jvm.org.apache.spark.unsafe.hash.Murmur3_x86_32(_SEED)  # type: ignore[union-attr]
    return keys_of(partitions, lambda key: int(murmur3.hashInt(key)))


def keys_of(partitions: int, hash_of: Callable[[int], int]) -> tuple[int, ...]:
    """Return a negative key for each of ``partitions``, where ``hash_of`` spreads keys over the partitions."""
    if partitions == 1:
        return (SHARED,)
    found: dict[int, int] = {}
    key = SHARED
    while len(found) < partitions:
        found.setdefault(hash_of(key) % partitions, key)
        key -= 1
    return tuple(found[partition] for partition in sorted(found))
