"""A topic's partitions in slices, so that a change is stored with one slice and not with the whole topic."""

import msgspec

from state.partition import Topic, TopicState
from state.stored.packed import PackedPartitions, pack

# This decides on which page a partition is stored, so no version may change it.
SLICE_PARTITIONS = 1_000


class Slice(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Some of a topic's partitions, in order, as bytes."""

    topic: str
    topic_id: str
    # Only the first slice has these four as they are now.
    state: TopicState
    config: dict[str, str]
    deletion_waits: bool
    # How many partitions all slices have; 0 in all but the first slice.
    count: int
    first_partition: int
    partitions: PackedPartitions

    @property
    def nth(self) -> int:
        """The slice's place among the topic's slices, from 0 on."""
        return self.first_partition // SLICE_PARTITIONS

    @property
    def is_whole(self) -> bool:
        return self.count == self.partitions.count


def slice_of(topic: Topic, nth: int, packed: PackedPartitions) -> Slice:
    """Return a slice of a topic by its place, with these partitions."""
    if nth == 0:
        head = (topic.topic, topic.topic_id, topic.state, topic.config, topic.deletion_waits)
        return Slice(*head, len(topic.partitions), 0, packed)
    return Slice(topic.topic, topic.topic_id, TopicState.created, {}, False, 0, nth * SLICE_PARTITIONS, packed)


def slices_of(topic: Topic) -> list[Slice]:
    """Cut a topic into slices. Most topics have one."""
    partitions = tuple(topic.partitions)
    starts = range(0, len(partitions) or 1, SLICE_PARTITIONS)
    return [
        slice_of(topic, nth, pack(partitions[start : start + SLICE_PARTITIONS])) for nth, start in enumerate(starts)
    ]
