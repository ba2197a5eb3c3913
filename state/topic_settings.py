"""The settings that a topic may have, and their values (``LogConfig`` of Kafka 3.9 to 4.4).

They depend on the release of the brokers, which a metadata version stands for. Brokers trust the metadata log, because
Kafka's controller refuses values that they could not read. So the rules refuse these too, and gateways before they ask
the engine. A new release gets a table of its own: if one of these changed, recorded logs would be decided differently.
``test_topic_settings.py`` compares the tables with Kafka's own.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial

from state.features import METADATA_VERSIONS
from state.setting_text import switch, trimmed, whole_number

Complaint = Callable[[str], str | None]

# The longest string that Kafka's protocol can carry.
VALUE_BYTES_MAX = 2**15 - 1
_INT_MAX, _LONG_MAX = 2**31 - 1, 2**63 - 1
_DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?")
_REPLICA = re.compile(r"([0-9]+:[0-9]+)?")
# The versions that Kafka 3.9 knows: a release, or a release with -IV0, -IV1 and so on.
_FORMAT = re.compile(
    r"0\.8\.[012]|0\.9\.0|0\.10\.0(-IV[01])?|0\.10\.1(-IV[0-2])?|0\.10\.2(-IV0)?|0\.11\.0(-IV[0-2])?"
    r"|(1\.[01]|2\.[56]|3\.[12489])(-IV0)?|(2\.[02348]|3\.0)(-IV[01])?|(2\.[17]|3\.[56])(-IV[0-2])?"
    r"|3\.3(-IV[0-3])?|3\.7(-IV[0-4])?|4\.0-IV[01]"
)


def _number(value: str, *, low: int, high: int, also: int | None = None) -> str | None:
    number = whole_number(value)
    if number is None:
        return "is not an integer"
    return None if low <= number <= high or number == also else f"is not between {low} and {high}"


def _share(value: str) -> str | None:
    number = trimmed(value)
    if not _DECIMAL.fullmatch(number):
        return "is not a number"
    return None if 0 <= float(number.rstrip("fFdD")) <= 1 else "is not between 0 and 1"


def _boolean(value: str) -> str | None:
    return "is neither true nor false" if switch(value) is None else None


def _one_of(*names: str) -> Complaint:
    return lambda value: None if trimmed(value) in names else f"is not one of {', '.join(names)}"


def listed(value: str) -> list[str]:
    """Split a list as Kafka does."""
    items = trimmed(value)
    return [trimmed(item) for item in items.split(",")] if items else []


def _some_of(*names: str) -> Complaint:
    return lambda value: None if set(listed(value)) <= set(names) else f"has items other than {', '.join(names)}"


def _replicas(value: str) -> str | None:
    items = listed(value)
    if trimmed("".join(items)) == "*" or all(_REPLICA.fullmatch(item) for item in items):
        return None
    return "is neither * nor a list of partition:broker"


def _int(low: int = -(2**31), high: int = _INT_MAX, also: int | None = None) -> Complaint:
    return partial(_number, low=low, high=high, also=also)


def _long(low: int = -(2**63)) -> Complaint:
    return partial(_number, low=low, high=_LONG_MAX)


def _format(value: str) -> str | None:
    """Check a version of the format of records as Kafka does, which reads no further than the release."""
    version = trimmed(value)
    parts = version.rstrip(".").split(".")
    length = 3 if version.startswith("0.") else 2
    read = version if len(parts) <= length else ".".join(parts[:length])
    return None if _FORMAT.fullmatch(read) else "is not a version of Kafka"


_POLICIES = _some_of("compact", "delete")
_INTERNAL = "internal.segment.bytes"
_OF_4_1: dict[str, Complaint] = {
    "cleanup.policy": _POLICIES,
    "compression.gzip.level": _int(1, 9, also=-1),
    "compression.lz4.level": _int(1, 17),
    "compression.type": _one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
    "compression.zstd.level": _int(-131_072, 22),
    "delete.retention.ms": _long(0),
    "file.delete.delay.ms": _long(0),
    "flush.messages": _long(1),
    "flush.ms": _long(0),
    "follower.replication.throttled.replicas": _replicas,
    "index.interval.bytes": _int(0),
    _INTERNAL: _int(),
    "leader.replication.throttled.replicas": _replicas,
    "local.retention.bytes": _long(-2),
    "local.retention.ms": _long(-2),
    "max.compaction.lag.ms": _long(1),
    "max.message.bytes": _int(0),
    "message.timestamp.after.max.ms": _long(0),
    "message.timestamp.before.max.ms": _long(0),
    "message.timestamp.type": _one_of("CreateTime", "LogAppendTime"),
    "min.cleanable.dirty.ratio": _share,
    "min.compaction.lag.ms": _long(0),
    "min.insync.replicas": _int(1),
    "preallocate": _boolean,
    "remote.log.copy.disable": _boolean,
    "remote.log.delete.on.disable": _boolean,
    "remote.storage.enable": _boolean,
    "retention.bytes": _long(),
    "retention.ms": _long(-1),
    "segment.bytes": _int(2**20),
    "segment.index.bytes": _int(4),
    "segment.jitter.ms": _long(0),
    "segment.ms": _long(1),
    "unclean.leader.election.enable": _boolean,
}
_OF_4_0 = {name: complaint for name, complaint in _OF_4_1.items() if name != _INTERNAL} | {"segment.bytes": _int(14)}
# Fix releases of 4.2 know the last one too. But a broker does not tell which of them it is.
_OF_4_4 = _OF_4_1 | {
    "errors.deadletterqueue.group.enable": _boolean,
    "remote.copy.lag.bytes": _long(-1),
    "remote.copy.lag.ms": _long(-1),
    "max.decompressed.message.bytes": _int(1, _INT_MAX - 8),
}
_OF_3_9 = _OF_4_0 | {
    "message.downconversion.enable": _boolean,
    "message.format.version": _format,
    "message.timestamp.difference.max.ms": _long(0),
}
_LISTS = (_POLICIES, _replicas)


def known_in(metadata_version: int) -> Mapping[str, Complaint]:
    """Return the settings that a topic may have, each with the check of its value."""
    if metadata_version > METADATA_VERSIONS["4.3"]:
        return _OF_4_4
    if metadata_version > METADATA_VERSIONS["4.0"]:
        return _OF_4_1
    return _OF_4_0 if metadata_version > METADATA_VERSIONS["3.9"] else _OF_3_9


def is_list(name: str) -> bool:
    """Return whether a topic's setting is a list, to which items may be added and from which they may be removed."""
    return _OF_4_1.get(name) in _LISTS


def complaint_about(name: str, value: str | None, metadata_version: int) -> str | None:
    """Return what is wrong with a topic's setting for brokers of a metadata version; None if nothing is."""
    known = known_in(metadata_version)
    if name not in known:
        return f"{name} is not a topic setting"
    if value is None:
        return f"{name} has no value"
    if len(value.encode()) > VALUE_BYTES_MAX:
        return f"{name} is longer than {VALUE_BYTES_MAX} bytes"
    complaint = known[name](value)
    return None if complaint is None else f"{name}: {value!r} {complaint}"
