"""The features of a Kafka cluster whose levels can be changed (KIP-584, 1022), and the levels that are served.

The levels and what they need are those of Kafka's ``MetadataVersion`` and ``Feature``. The records that gateways write
have the same versions from the metadata version of Kafka 3.9 to that of 4.2, at which later brokers are led.
"""

from collections.abc import Iterable
from typing import NamedTuple

from state.registration import Feature

METADATA_VERSION, STREAMS_VERSION = "metadata.version", "streams.version"
KRAFT_VERSION = "kraft.version"
# Whether partitions keep eligible leader replicas (KIP-966). Rules read it as a setting of this name.
ELIGIBLE_VERSION = "eligible.leader.replicas.version"
# The level of the bus (``state.level``) from which on they may.
ELIGIBLE_LEVEL = 2


class Levels(NamedTuple):
    """The lowest and the highest level."""

    low: int
    high: int


# Only brokers act on these, except on metadata.version: its level is the version of the records that gateways write.
# Eligible leader replicas are left out, because the rules do not have them.
SUPPORTED = {
    "group.version": Levels(0, 1),
    METADATA_VERSION: Levels(21, 29),
    "share.version": Levels(0, 1),
    STREAMS_VERSION: Levels(0, 1),
    "transaction.version": Levels(0, 2),
}
# The metadata version of Kafka 4.1. A log has it unless another one was chosen.
USUAL_METADATA_VERSION = 27
# No record has the level of this feature. It is 1 as soon as the metadata log has the voters.
KRAFT_LEVELS = Levels(0, 1)
# What a gateway supports.
SERVED = SUPPORTED | {KRAFT_VERSION: KRAFT_LEVELS}
# The newest metadata version of each release of Kafka.
METADATA_VERSIONS = {"3.9": 21, "4.0": 25, "4.1": USUAL_METADATA_VERSION, "4.2": 29, "4.3": 30, "4.4": 33}
# The newest one at which brokers of each release are led.
LED_AT = {release: min(level, SUPPORTED[METADATA_VERSION].high) for release, level in METADATA_VERSIONS.items()}
# The level of a feature in a freshly formatted cluster, and the metadata version from which on it has that level.
_BEGINNINGS = {
    "group.version": (1, 22),
    "transaction.version": (2, 24),
    "share.version": (1, 28),
    STREAMS_VERSION: (1, 29),
}


def newest_metadata_version(features: Iterable[Feature]) -> int:
    """Return the newest metadata version in the ``features`` of some brokers."""
    supported = [feature.max_version for feature in features if feature.name == METADATA_VERSION]
    return max(supported, default=USUAL_METADATA_VERSION)


def first_levels(metadata_version: int = USUAL_METADATA_VERSION) -> dict[str, int]:
    """Return the levels with which a log of ``metadata_version`` begins. Any other feature has level 0."""
    others = {name: level for name, (level, since) in _BEGINNINGS.items() if metadata_version >= since}
    return {METADATA_VERSION: metadata_version, **others}


def not_supported(who: str, levels: Levels | None, level: int) -> str | None:
    """Return why a feature cannot have a level; None if it can."""
    if levels is None or levels.high == 0:
        return None if level == 0 and levels is not None else f"{who} does not support the feature"
    if not levels.low <= level <= levels.high:
        return f"{who} supports levels {levels.low} to {levels.high}"
    return None
