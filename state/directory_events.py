"""The event in which brokers assign replicas to log directories (KIP-858)."""

from typing import Annotated

from msgspec import Meta

from state.event import Event
from state.limits import BrokerEpoch, Id, Name, Text


class AssignReplicasToDirs(Event, frozen=True, kw_only=True, tag="assign_replicas_to_dirs"):
    """A broker says in which of its log directories its replicas of a topic are."""

    topic: Name
    broker: Id
    broker_epoch: BrokerEpoch
    # The directory's id.
    directory: Annotated[str, Meta(min_length=1, max_length=4_096)]
    partitions: Annotated[tuple[Id, ...], Meta(min_length=1, max_length=10_000)]
    # If given, the event is about that topic and no other of the same name.
    topic_id: Text | None = None
