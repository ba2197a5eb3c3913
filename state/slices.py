"""A topic of many partitions, in slices, so that a change is stored with one slice and not with the whole topic."""

from collections.abc import Iterable

import msgspec

from state.packed import Packed, Unpacked, pack
from state.partition import Topic, TopicState
from state.placed_partition import PlacedPartition

# This decides on which page a partition is stored, so no version may change it.
SLICE_PARTITIONS = 1_000
# A topic of up to this many partitions is read whole, because finding one of them among bytes would take longer.
PLAIN_PARTITIONS_MAX = 8


class Slice(msgspec.Struct, frozen=True, array_like=True):
    """Some of a topic's partitions, in order."""

    # The topic with only these partitions. Only the first slice has the topic's current settings and state.
    topic: Topic
    # How many partitions all slices have; 0 in all but the first slice.
    count: int = 0

    @property
    def first_partition(self) -> int:
        """Return the number of its first partition; 0 if it has none."""
        return self.topic.partitions[0].partition if self.topic.partitions else 0

    @property
    def is_whole(self) -> bool:
        """Say whether it is the whole topic."""
        return self.count == len(self.topic.partitions)


class StoredSlice(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A slice as it is stored, with its partitions as bytes."""

    topic: str
    topic_id: str
    # As in Slice, only the first slice has these four as they are now.
    state: TopicState
    config: dict[str, str]
    deletion_waits: bool
    count: int
    first_partition: int
    partitions: Packed

    @property
    def nth(self) -> int:
        """Return its place among the slices, from 0 on."""
        return self.first_partition // SLICE_PARTITIONS


class StoredPage(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A page as it is stored."""

    packed: list[StoredSlice]
    # Topics of few partitions.
    plain: list[Topic]


def is_plain(topic: Topic) -> bool:
    """Say whether a topic is so small that it is stored as it is. Directories are stored only in packed partitions."""
    return len(topic.partitions) <= PLAIN_PARTITIONS_MAX and not has_directories(topic)


def has_directories(topic: Topic) -> bool:
    """Say whether any partition knows in which log directories its replicas are."""
    return any(isinstance(partition, PlacedPartition) for partition in topic.partitions)


def stored(one: Slice) -> StoredSlice | Topic:
    """Return a slice as it is stored: the topic itself if it is small, and otherwise its partitions as bytes."""
    topic = one.topic
    if one.is_whole and is_plain(topic):
        return topic
    head = (topic.topic, topic.topic_id, topic.state, topic.config, topic.deletion_waits)
    return StoredSlice(*head, one.count, one.first_partition, pack(topic.partitions))


def read(one: StoredSlice | Topic) -> Slice:
    """Read all partitions of a slice."""
    if isinstance(one, Topic):
        return Slice(msgspec.structs.replace(one, partitions=tuple(one.partitions)), len(one.partitions))
    partitions = tuple(Unpacked(one.partitions).all())
    return Slice(Topic(one.topic, one.topic_id, one.state, one.config, partitions, one.deletion_waits), one.count)


def slices_of(topic: Topic) -> list[Slice]:
    """Cut a topic into slices. Most topics have one."""
    partitions = tuple(topic.partitions)
    if len(partitions) <= SLICE_PARTITIONS:
        return [Slice(topic, len(partitions))]
    first = msgspec.structs.replace(topic, partitions=partitions[:SLICE_PARTITIONS])
    others = (
        Topic(topic.topic, topic.topic_id, TopicState.created, {}, partitions[start : start + SLICE_PARTITIONS])
        for start in range(SLICE_PARTITIONS, len(partitions), SLICE_PARTITIONS)
    )
    return [Slice(first, len(partitions)), *(Slice(other) for other in others)]


def whole(slices: Iterable[Slice]) -> Topic:
    """Put a topic together from its slices in any order. Raises ``ValueError`` if they are not the whole topic."""
    first, *others = sorted(slices, key=lambda one: one.first_partition)
    if first.is_whole and not others:
        return first.topic
    partitions = tuple(partition for one in (first, *others) for partition in one.topic.partitions)
    numbers = [partition.partition for partition in partitions]
    ids = {one.topic.topic_id for one in (first, *others)}
    if numbers != list(range(first.count)) or len(ids) > 1:
        raise ValueError(
            f"topic {first.topic.topic} has {first.count} partitions, and its slices do not make up these: "
            f"{len(partitions)} partitions of {len(ids)} topic id(s)"
        )
    return msgspec.structs.replace(first.topic, partitions=partitions)
