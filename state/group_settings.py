"""The dynamic settings of groups, their limits and their defaults (``GroupConfig`` of Kafka 4.1 and 4.4).

Kafka's controller takes the limits from its own settings. These are their defaults. With them a session is always
longer than a heartbeat interval, which Kafka also checks.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from state.features import METADATA_VERSIONS
from state.setting_text import switch
from state.topic_name import complaint_about_topic_name

_INT = re.compile(r"[+-]?[0-9]{1,10}")
_RESET = re.compile(
    r"latest|earliest|by_duration:P(?=[0-9T])([0-9]{1,9}D)?(T(?=[0-9])([0-9]{1,9}H)?([0-9]{1,9}M)?([0-9]{1,9}(\.[0-9]{1,9})?S)?)?"
)


class GroupSetting(NamedTuple):
    """A setting that is a whole number."""

    default: int
    low: int
    high: int


GROUP_NUMBERS = {
    "consumer.heartbeat.interval.ms": GroupSetting(5_000, 5_000, 15_000),
    "consumer.session.timeout.ms": GroupSetting(45_000, 45_000, 60_000),
    "share.heartbeat.interval.ms": GroupSetting(5_000, 5_000, 15_000),
    "share.record.lock.duration.ms": GroupSetting(30_000, 15_000, 60_000),
    "share.session.timeout.ms": GroupSetting(45_000, 45_000, 60_000),
    "streams.heartbeat.interval.ms": GroupSetting(5_000, 5_000, 15_000),
    "streams.num.standby.replicas": GroupSetting(0, 0, 2),
    "streams.session.timeout.ms": GroupSetting(45_000, 45_000, 60_000),
}
# Where a share group of Kafka 4.4 puts records that it could not process (KIP-1191).
_DEAD_LETTERS, _COPIED = "errors.deadletterqueue.topic.name", "errors.deadletterqueue.copy.record.enable"
_ISOLATION_LEVELS = ("read_committed", "read_uncommitted")
GROUP_WORDS = {"share.auto.offset.reset": "latest", "share.isolation.level": "read_uncommitted"}
GROUP_DEFAULTS = {key: str(one.default) for key, one in GROUP_NUMBERS.items()} | GROUP_WORDS


def complaint_about_group(after: Mapping[str, str], metadata_version: int) -> str | None:
    """Return what is wrong with the settings of a group for brokers of a metadata version; None if nothing is."""
    return next((complaint for pair in after.items() if (complaint := _complaint_about(*pair, metadata_version))), None)


def _complaint_about(key: str, value: str, metadata_version: int) -> str | None:
    if key in GROUP_NUMBERS:
        limits = GROUP_NUMBERS[key]
        if _INT.fullmatch(value.strip()) is None:
            return f"{key}: {value!r} is not an integer"
        is_allowed = limits.low <= int(value) <= limits.high
        return None if is_allowed else f"{key}: {value} is not between {limits.low} and {limits.high}"
    if key == "share.auto.offset.reset":
        return None if _RESET.fullmatch(value) else f"{key}: {value!r} is not latest, earliest or by_duration:..."
    if key == "share.isolation.level":
        expected = " or ".join(_ISOLATION_LEVELS)
        return None if value in _ISOLATION_LEVELS else f"{key}: {value!r} is not {expected}"
    if key == _DEAD_LETTERS and metadata_version > METADATA_VERSIONS["4.3"]:
        complaint = complaint_about_topic_name(value) if value else None
        return None if complaint is None else f"{key}: {complaint}"
    if key == _COPIED and metadata_version > METADATA_VERSIONS["4.3"]:
        return None if switch(value) is not None else f"{key}: {value!r} is neither true nor false"
    return f"{key} is not a setting of groups"
