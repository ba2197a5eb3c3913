"""The types of settings that a gateway describes (``DescribeConfigsResponse.ConfigType`` of Kafka 4.1)."""

from brokers.gateways.kraft.metadata.image import CLIENT_METRICS_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE
from state.group_settings import GROUP_NUMBERS, GROUP_WORDS

_UNKNOWN, _BOOLEAN, _STRING, _INT, _LONG, _DOUBLE, _LIST = 0, 1, 2, 3, 5, 6, 7
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
    TOPIC_RESOURCE: dict.fromkeys(_TOPIC_BOOLEANS, _BOOLEAN)
    | dict.fromkeys(_TOPIC_INTS, _INT)
    | dict.fromkeys(_TOPIC_LONGS, _LONG)
    | dict.fromkeys(_TOPIC_LISTS, _LIST)
    | dict.fromkeys(("compression.type", "message.timestamp.type"), _STRING)
    | {"min.cleanable.dirty.ratio": _DOUBLE},
    GROUP_RESOURCE: dict.fromkeys(GROUP_NUMBERS, _INT) | dict.fromkeys(GROUP_WORDS, _STRING),
    CLIENT_METRICS_RESOURCE: {"interval.ms": _INT, "match": _LIST, "metrics": _LIST},
}


def type_of(resource_type: int, name: str) -> int:
    """Return the type of a setting; that of a broker's settings is not known here."""
    return _TYPES.get(resource_type, {}).get(name, _UNKNOWN)
