"""Which shard an event belongs to."""

from state.events import (
    AlterIsr,
    AlterReassignment,
    AnyEvent,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    LogEndOffset,
    Malformed,
    Progress,
    ReplicaReport,
)
from state.ids import shard_of

TOPIC_EVENTS = (
    LogEndOffset,
    AlterIsr,
    ReplicaReport,
    CreateTopic,
    DeleteTopic,
    CreatePartitions,
    AlterReassignment,
)


def route(event: AnyEvent | Malformed | Progress, shards: int) -> int | None:
    """Name the shard that takes ``event`` in; None when every shard does.

    A topic's events go to the shard that holds the topic, whether it exists or not. What could not
    be understood goes to shard 0, which writes what all shards would decide alike.
    """
    if isinstance(event, TOPIC_EVENTS):
        return shard_of(event.topic, shards)
    return 0 if isinstance(event, Malformed) else None
