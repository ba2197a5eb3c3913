"""The settings that a topic has, set or not (``KafkaConfigSchema.resolveEffectiveTopicConfigs`` of Kafka 4.1)."""

import re
from collections.abc import Mapping
from typing import NamedTuple

# Python refuses to parse a number with thousands of digits. No number of Kafka's has more than these.
_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")
_PER_MINUTE, _PER_HOUR = 60_000, 3_600_000
_LONG_MAX = str(2**63 - 1)


class Default(NamedTuple):
    """The value of a setting that a topic does not have.

    ``synonyms`` are the brokers' settings that give it, the strongest first, each with the factor between its unit and
    the topic's.
    """

    value: str
    synonyms: tuple[tuple[str, int], ...] = ()


class Origin(NamedTuple):
    """A place where a setting may have a value: the name that it has there, and which place it is."""

    name: str
    value: str
    # DescribeConfigsResponse.ConfigSource
    source: int


class Effective(NamedTuple):
    """A topic's setting, with the place that it comes from (``DescribeConfigsResponse.ConfigSource``)."""

    name: str
    value: str
    source: int
    # All places that have a value, the strongest first (KIP-226).
    origins: tuple[Origin, ...]


OF_TOPIC, OF_ALL_BROKERS, DEFAULT = 1, 3, 5


def _like(synonym: str, value: str) -> Default:
    return Default(value, ((synonym, 1),))


DEFAULTS = {
    "cleanup.policy": _like("log.cleanup.policy", "delete"),
    "compression.gzip.level": _like("compression.gzip.level", "-1"),
    "compression.lz4.level": _like("compression.lz4.level", "9"),
    "compression.type": _like("compression.type", "producer"),
    "compression.zstd.level": _like("compression.zstd.level", "3"),
    "delete.retention.ms": _like("log.cleaner.delete.retention.ms", "86400000"),
    "file.delete.delay.ms": _like("log.segment.delete.delay.ms", "60000"),
    "flush.messages": _like("log.flush.interval.messages", _LONG_MAX),
    "flush.ms": Default(_LONG_MAX, (("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1))),
    "follower.replication.throttled.replicas": Default(""),
    "index.interval.bytes": _like("log.index.interval.bytes", "4096"),
    "leader.replication.throttled.replicas": Default(""),
    "local.retention.bytes": _like("log.local.retention.bytes", "-2"),
    "local.retention.ms": _like("log.local.retention.ms", "-2"),
    "max.compaction.lag.ms": _like("log.cleaner.max.compaction.lag.ms", _LONG_MAX),
    "max.message.bytes": _like("message.max.bytes", "1048588"),
    "message.timestamp.after.max.ms": _like("log.message.timestamp.after.max.ms", "3600000"),
    "message.timestamp.before.max.ms": _like("log.message.timestamp.before.max.ms", _LONG_MAX),
    "message.timestamp.type": _like("log.message.timestamp.type", "CreateTime"),
    "min.cleanable.dirty.ratio": _like("log.cleaner.min.cleanable.ratio", "0.5"),
    "min.compaction.lag.ms": _like("log.cleaner.min.compaction.lag.ms", "0"),
    "min.insync.replicas": _like("min.insync.replicas", "1"),
    "preallocate": _like("log.preallocate", "false"),
    "remote.log.copy.disable": Default("false"),
    "remote.log.delete.on.disable": Default("false"),
    "remote.storage.enable": Default("false"),
    "retention.bytes": _like("log.retention.bytes", "-1"),
    "retention.ms": Default(
        "604800000",
        (("log.retention.ms", 1), ("log.retention.minutes", _PER_MINUTE), ("log.retention.hours", _PER_HOUR)),
    ),
    "segment.bytes": _like("log.segment.bytes", "1073741824"),
    "segment.index.bytes": _like("log.index.size.max.bytes", "10485760"),
    "segment.jitter.ms": Default("0", (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", _PER_HOUR))),
    "segment.ms": Default("604800000", (("log.roll.ms", 1), ("log.roll.hours", _PER_HOUR))),
    "unclean.leader.election.enable": _like("unclean.leader.election.enable", "false"),
}


def effective(topic: Mapping[str, str], all_brokers: Mapping[str, str]) -> list[Effective]:
    """Return all settings of a topic: its own, the ones of all brokers, and Kafka's defaults.

    Settings of a single broker do not count. Kafka's controller reads its own file in their place.
    """
    return [_effective(name, default, topic, all_brokers) for name, default in DEFAULTS.items()]


def _effective(name: str, default: Default, topic: Mapping[str, str], all_brokers: Mapping[str, str]) -> Effective:
    of_brokers = [
        Origin(synonym, _converted(all_brokers[synonym], factor), OF_ALL_BROKERS)
        for synonym, factor in default.synonyms
        if synonym in all_brokers
    ]
    # Kafka names no origin of a default that could come from settings in several units.
    of_kafka = [
        Origin(synonym, default.value, DEFAULT) for synonym, _ in default.synonyms if len(default.synonyms) == 1
    ]
    origins = (*([Origin(name, topic[name], OF_TOPIC)] if name in topic else []), *of_brokers, *of_kafka)
    first = origins[0] if origins else Origin(name, default.value, DEFAULT)
    return Effective(name, first.value, first.source, origins)


def _converted(value: str, factor: int) -> str:
    # Brokers check these settings, and no controller does.
    return str(int(value) * factor) if factor > 1 and _WHOLE.fullmatch(value.strip()) else value
