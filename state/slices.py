"""A topic of many partitions, in slices: no page holds all of it, and a change is stored with its slice alone."""

from collections.abc import Iterable

import msgspec

from state.partition import Topic, TopicState

# It says on which page a partition is stored: as fixed as the pages themselves.
SLICE_PARTITIONS = 1_000


class Slice(msgspec.Struct, frozen=True, array_like=True):
    """Hold some of a topic's partitions, in order.

    The first slice has besides all else that there is of the topic, and ``count`` of its partitions in all slices;
    in others that is 0.
    """

    topic: Topic
    count: int = 0

    @property
    def first_partition(self) -> int:
        """Name the partition that it begins with; 0 where there is none."""
        return self.topic.partitions[0].partition if self.topic.partitions else 0

    @property
    def nth(self) -> int:
        """Tell which one it is, from 0 on."""
        return self.first_partition // SLICE_PARTITIONS

    @property
    def is_whole(self) -> bool:
        """Say whether it is all of the topic."""
        return self.first_partition == 0 and self.count == len(self.topic.partitions)

    def is_same_as(self, other: "Slice") -> bool:
        """Say whether nothing was changed; partitions that stayed are the same objects."""
        mine, theirs = self.topic, other.topic
        return (
            self.count == other.count
            and len(mine.partitions) == len(theirs.partitions)
            and all(one is another for one, another in zip(mine.partitions, theirs.partitions, strict=True))
            and msgspec.structs.replace(mine, partitions=()) == msgspec.structs.replace(theirs, partitions=())
        )


def slices_of(topic: Topic) -> list[Slice]:
    """Cut a topic into slices; most have one."""
    partitions = topic.partitions
    if len(partitions) <= SLICE_PARTITIONS:
        return [Slice(topic, len(partitions))]
    first = msgspec.structs.replace(topic, partitions=partitions[:SLICE_PARTITIONS])
    others = (
        Topic(topic.topic, topic.topic_id, TopicState.created, {}, partitions[start : start + SLICE_PARTITIONS])
        for start in range(SLICE_PARTITIONS, len(partitions), SLICE_PARTITIONS)
    )
    return [Slice(first, len(partitions)), *(Slice(other) for other in others)]


def whole(slices: Iterable[Slice]) -> Topic:
    """Put a topic together from its slices, in whatever order; raises ``ValueError`` when they are not all of it."""
    first, *others = sorted(slices, key=lambda one: one.first_partition)
    if first.is_whole and not others:
        return first.topic
    partitions = tuple(partition for one in (first, *others) for partition in one.topic.partitions)
    numbers = [partition.partition for partition in partitions]
    ids = {one.topic.topic_id for one in others} | {first.topic.topic_id}
    if len(partitions) != first.count or numbers != list(range(first.count)) or len(ids) > 1:
        raise ValueError(
            f"topic {first.topic.topic} has {first.count} partitions, and its slices hold {len(partitions)} of them"
        )
    return msgspec.structs.replace(first.topic, partitions=partitions)
