"""The shard that takes in an event."""

from state.directory_events import AssignReplicasToDirs
from state.entity_events import ENTITY_EVENTS
from state.events import (
    AdoptTopic,
    AlterIsr,
    AlterReassignment,
    AnyEvent,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    IsrWritten,
    LogEndOffset,
    Logged,
    Malformed,
    Progress,
    ReplicaLog,
    ReplicaReport,
)
from state.ids import shard_of

_PROGRESS = Progress()

TOPIC_EVENTS = (
    LogEndOffset,
    AlterIsr,
    IsrWritten,
    ReplicaReport,
    ReplicaLog,
    CreateTopic,
    DeleteTopic,
    CreatePartitions,
    AlterReassignment,
    AdoptTopic,
    AssignReplicasToDirs,
)


def route(event: AnyEvent | Malformed | Progress, shards: int) -> int | None:
    """Return the shard that takes in ``event``; None if every shard does.

    A topic's events go to the shard to which the topic belongs, whether it exists or not. Malformed events go to
    shard 0, which writes what all shards would decide alike, and so do those about ACLs and metadata entities, which
    only shard 0 keeps.
    """
    if isinstance(event, TOPIC_EVENTS):
        return shard_of(event.topic, shards)
    return 0 if isinstance(event, (Malformed, *ENTITY_EVENTS)) else None


def batch_for(shard: int, shards: int, batch: list[Logged]) -> list[Logged]:
    """Return the events of a batch that a shard takes in.

    Every shard learns how far the batch goes: one that does not take in the last event gets a ``Progress`` instead.
    """
    if shards == 1:
        return batch
    mine = [entry for entry in batch if route(entry.event, shards) in (None, shard)]
    last = batch[-1]
    if not mine or mine[-1].seq < last.seq:
        mine.append(Logged(last.seq, last.clock_ms, _PROGRESS, b""))
    return mine
