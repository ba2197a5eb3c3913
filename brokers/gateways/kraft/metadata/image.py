"""The metadata as brokers hold it after applying all records of the log (Kafka's ``MetadataImage``)."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

NO_QUORUM = 0
NO_PRODUCER_ID = -1
TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4
GROUP_RESOURCE = 32
# The resource that holds the settings of all brokers has an empty name.
ALL_BROKERS = ""

Ids = tuple[int, ...]


class Registration(msgspec.Struct, frozen=True):
    """A broker's registration (``BrokerRegistration``).

    The ids of the incarnation and of log directories are Kafka's uuids as text.
    """

    broker: int
    broker_epoch: int
    incarnation: str
    endpoints: tuple[tuple[str, str, int, int], ...]
    features: tuple[tuple[str, int, int], ...]
    rack: str | None
    log_dirs: tuple[str, ...]
    fenced: bool
    in_controlled_shutdown: bool


class PartitionState(msgspec.Struct, frozen=True, gc=False):
    """A partition (``PartitionRegistration``)."""

    replicas: Ids
    # In the order of ``replicas``.
    directories: tuple[str, ...]
    # isr ⊆ replicas
    isr: Ids
    removing_replicas: Ids
    adding_replicas: Ids
    # leader = -1 or leader ∈ isr
    leader: int
    leader_recovery_state: int
    leader_epoch: int
    partition_epoch: int


class TopicState(NamedTuple):
    """A topic and its partitions by number."""

    name: str
    topic_id: str
    partitions: Mapping[int, PartitionState]


class MetadataImage(NamedTuple):
    """All metadata. An image is never changed in place, so it can be read while the next one is made."""

    features: Mapping[str, int] = {}
    brokers: Mapping[int, Registration] = {}
    # By topic id.
    topics: Mapping[str, TopicState] = {}
    # By topic name; topics[topic_ids[name]].name = name
    topic_ids: Mapping[str, str] = {}
    # By (resource type, resource name); no entry is empty.
    configs: Mapping[tuple[int, str], Mapping[str, str]] = {}
    next_producer_id: int = NO_PRODUCER_ID
    # Of the last record; NO_QUORUM before the quorum's first leader.
    quorum_epoch: int = NO_QUORUM


Values = Mapping[str, Any]
