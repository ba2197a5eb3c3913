"""The types of settings that a gateway describes (``DescribeConfigsResponse.ConfigType`` of Kafka 4.1)."""

from brokers.gateways.kraft.metadata.image import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from state.broker_setting_types import BOOLEAN, DOUBLE, INT, LIST, LONG, STRING, UNKNOWN, broker_setting_type
from state.broker_setting_types import is_secret as is_secret_of_brokers
from state.group_settings import GROUP_NUMBERS, GROUP_WORDS

_TOPIC_BOOLEANS = (
    "preallocate",
    "remote.log.copy.disable",
    "remote.log.delete.on.disable",
    "remote.storage.enable",
    "unclean.leader.election.enable",
)
_TOPIC_INTS = (
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.zstd.level",
    "index.interval.bytes",
    "max.message.bytes",
    "min.insync.replicas",
    "segment.bytes",
    "segment.index.bytes",
)
_TOPIC_LONGS = (
    "delete.retention.ms",
    "file.delete.delay.ms",
    "flush.messages",
    "flush.ms",
    "local.retention.bytes",
    "local.retention.ms",
    "max.compaction.lag.ms",
    "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms",
    "min.compaction.lag.ms",
    "retention.bytes",
    "retention.ms",
    "segment.jitter.ms",
    "segment.ms",
)
_TOPIC_LISTS = (
    "cleanup.policy",
    "follower.replication.throttled.replicas",
    "leader.replication.throttled.replicas",
)
_TYPES: dict[int, dict[str, int]] = {
    TOPIC_RESOURCE: dict.fromkeys(_TOPIC_BOOLEANS, BOOLEAN)
    | dict.fromkeys(_TOPIC_INTS, INT)
    | dict.fromkeys(_TOPIC_LONGS, LONG)
    | dict.fromkeys(_TOPIC_LISTS, LIST)
    | dict.fromkeys(("compression.type", "message.timestamp.type"), STRING)
    | {"min.cleanable.dirty.ratio": DOUBLE},
    GROUP_RESOURCE: dict.fromkeys(GROUP_NUMBERS, INT) | dict.fromkeys(GROUP_WORDS, STRING),
    CLIENT_METRICS_RESOURCE: {"interval.ms": INT, "match": LIST, "metrics": LIST},
}


def type_of(resource_type: int, name: str) -> int:
    """Return the type of a setting."""
    if resource_type == BROKER_RESOURCE:
        return broker_setting_type(name)
    return _TYPES.get(resource_type, {}).get(name, UNKNOWN)


def is_secret(resource_type: int, name: str) -> bool:
    """Return whether a setting's value is never shown. Only settings of brokers are secret."""
    return resource_type == BROKER_RESOURCE and is_secret_of_brokers(name)
