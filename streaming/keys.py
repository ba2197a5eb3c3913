"""The keys of Spark's rows. Each shard has one. Each of Spark's partitions has one more, for events of all shards.

The problem: Spark puts a key into a partition by its hash. The keys 0 to 15 fall into two partitions as nine and seven,
and into four as six, four, three and three. The fullest partition is the last to finish, and each batch waits for it.

The insight: a shard may have any key from which its number follows. With 16 shards, the keys 5, 21, 37 and so on all
mean shard 5. So each shard takes the first of its keys that falls into the partition whose turn it is.

    of 16 shards, over 2 partitions    0     1     2     3     4     5    …
    key                                32    1     2     3     4     21
    partition                          0     1     0     1     0     1
"""

from collections.abc import Callable
from itertools import count
from typing import NamedTuple

import msgspec
from pyspark.sql import SparkSession

# Events for all shards have negative keys, one in each of Spark's partitions. They sort before the shards' keys.
SHARED = -1
# Spark spreads the keys of a stateful operator with this seed. Every checkpoint depends on it, so it cannot change.
_SEED = 42


class Keys(NamedTuple):
    """The key of each shard, and in each of Spark's partitions the key of the events for all shards."""

    shards: tuple[int, ...]
    shared: tuple[int, ...]

    @property
    def option(self) -> str:
        """These keys as the option of a data source, which ``read_option`` reads."""
        return msgspec.json.encode(self).decode()


def read_option(option: str) -> Keys:
    """Read ``Keys.option``."""
    return msgspec.json.decode(option, type=Keys)


def shard_of_key(key: int, shards: int) -> int | None:
    """Return the number of the shard that has a key; None if it is the key of events for all shards."""
    return None if key < 0 else key % shards


def keys_of(shards: int, partitions: int, hash_of: Callable[[int], int]) -> Keys:
    """Return the keys of ``shards`` that ``hash_of`` spreads evenly over ``partitions``."""
    if partitions == 1:
        return Keys(tuple(range(shards)), (SHARED,))

    def first(start: int, step: int, partition: int) -> int:
        return next(key for key in count(start, step) if hash_of(key) % partitions == partition)

    return Keys(
        tuple(first(shard, shards, shard % partitions) for shard in range(shards)),
        tuple(first(SHARED, -1, partition) for partition in range(partitions)),
    )


def spark_keys(session: SparkSession, shards: int, partitions: int) -> Keys:
    """Return the keys of ``shards`` over Spark's ``partitions``."""
    # The class has two methods of this name, one of them static. If called on the class, py4j takes the one that the
    # JVM lists first. So it is called on an object. The type stubs do not know the JVM's classes.
    murmur3 = session._jvm.org.apache.spark.unsafe.hash.Murmur3_x86_32(_SEED)  # type: ignore[union-attr]
    return keys_of(shards, partitions, lambda key: int(murmur3.hashInt(key)))
