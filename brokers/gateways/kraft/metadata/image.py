"""What the records of the metadata log come to, as brokers hold it (Kafka's ``MetadataImage``)."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

NO_QUORUM = 0
NO_PRODUCER_ID = -1
TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4
GROUP_RESOURCE = 32
# The resource under which the settings of all brokers stand has no name.
ALL_BROKERS = ""

Ids = tuple[int, ...]


class Registration(msgspec.Struct, frozen=True):
    """Hold one broker (``BrokerRegistration``); ids of the incarnation and directories are Kafka's uuids as text."""

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
    """Hold one partition (``PartitionRegistration``); ``directories`` stand in the order of ``replicas``."""

    replicas: Ids
    directories: tuple[str, ...]
    isr: Ids
    removing_replicas: Ids
    adding_replicas: Ids
    leader: int
    leader_recovery_state: int
    leader_epoch: int
    partition_epoch: int


class TopicState(NamedTuple):
    """Hold one topic."""

    name: str
    topic_id: str
    partitions: Mapping[int, PartitionState]


class MetadataImage(NamedTuple):
    """Hold everything, never changed in place: whoever holds one may read it while the next is made.

    ``topics`` are by id, ``topic_ids`` by name, ``configs`` by (resource type, resource name).
    ``quorum_epoch`` is that of the last record, NO_QUORUM before the first leader of the quorum.
    """

    features: Mapping[str, int] = {}
    brokers: Mapping[int, Registration] = {}
    topics: Mapping[str, TopicState] = {}
    topic_ids: Mapping[str, str] = {}
    configs: Mapping[tuple[int, str], Mapping[str, str]] = {}
    next_producer_id: int = NO_PRODUCER_ID
    quorum_epoch: int = NO_QUORUM


Values = Mapping[str, Any]
