"""The metadata as brokers hold it after applying all records of the log (Kafka's ``MetadataImage``)."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from brokers.gateways.kraft.metadata.partition_table import Ids as Ids
from brokers.gateways.kraft.metadata.partition_table import Partitions
from brokers.gateways.kraft.metadata.partition_table import PartitionState as PartitionState
from brokers.gateways.kraft.metadata.sliced_map import SlicedMap
from state.acl import Acl
from state.entity import Entity
from state.features import CIDR_SINCE, CORDONING_SINCE, METADATA_VERSION, USUAL_METADATA_VERSION

NO_QUORUM = 0
NO_PRODUCER_ID = -1
TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4
CLIENT_METRICS_RESOURCE = 16
GROUP_RESOURCE = 32
# The resource that holds the settings of all brokers has an empty name.
ALL_BROKERS = ""


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
    cordoned_log_dirs: tuple[str, ...] = ()


class TopicState(NamedTuple):
    """A topic and its partitions by number."""

    name: str
    topic_id: str
    partitions: Partitions


class MetadataImage(NamedTuple):
    """All metadata. An image is never changed in place, so it can be read while the next one is made.

    Its maps are persistent: an image shares with the one before it whatever did not change. So one change costs nearly
    the same at any size.
    """

    features: SlicedMap[str, int] = SlicedMap()
    brokers: SlicedMap[int, Registration] = SlicedMap()
    # By topic id.
    topics: SlicedMap[str, TopicState] = SlicedMap()
    # By topic name; topics[topic_ids[name]].name = name
    topic_ids: SlicedMap[str, str] = SlicedMap()
    # By (resource type, resource name); no entry is empty.
    configs: SlicedMap[tuple[int, str], Mapping[str, str]] = SlicedMap()
    next_producer_id: int = NO_PRODUCER_ID
    # Of the last record; NO_QUORUM before the quorum's first leader.
    quorum_epoch: int = NO_QUORUM
    # By id.
    acls: SlicedMap[str, Acl] = SlicedMap()
    # The entities that have records of their own, by ``entity_id_of``.
    entities: SlicedMap[str, Entity] = SlicedMap()


Values = Mapping[str, Any]


def metadata_version_of(image: MetadataImage) -> int:
    return image.features.get(METADATA_VERSION, USUAL_METADATA_VERSION)


def knows_networks_in_acls(image: MetadataImage) -> bool:
    """Return whether the log is at a metadata version at which brokers know networks as hosts of ACLs (KIP-1276)."""
    return metadata_version_of(image) >= CIDR_SINCE


def knows_cordoning(image: MetadataImage) -> bool:
    """Return whether the log is at a metadata version at which log directories can be cordoned (KIP-1066)."""
    return metadata_version_of(image) >= CORDONING_SINCE
