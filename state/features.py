"""The features of a Kafka cluster whose levels can be changed (KIP-584, 1022), and the levels that are served.

The levels and what they need are those of Kafka's ``MetadataVersion`` and ``Feature``.
"""

from collections.abc import Iterable
from typing import NamedTuple

from state.registration import Feature

METADATA_VERSION, STREAMS_VERSION = "metadata.version", "streams.version"
KRAFT_VERSION = "kraft.version"
# Whether partitions keep eligible leader replicas (KIP-966). Rules read it as a setting of this name.
ELIGIBLE_VERSION = "eligible.leader.replicas.version"
# The metadata version from which on brokers know them.
ELIGIBLE_SINCE = 23
# The one from which on a log begins with them.
ELIGIBLE_ON_SINCE = 26
# The level of the bus (``state.level``) from which on they may.
ELIGIBLE_LEVEL = 2
# The level of the bus (``state.level``) from which on metadata versions of Kafka 4.3 and later may be chosen.
LEVEL_OF_KAFKA_4_3 = 2


class Levels(NamedTuple):
    """The lowest and the highest level."""

    low: int
    high: int


# Only brokers act on these, except on metadata.version: its level is the version of the records that gateways write.
# The level of eligible leader replicas is a setting.
_AT_LEVEL_1 = {
    "group.version": Levels(0, 1),
    METADATA_VERSION: Levels(21, 29),
    "share.version": Levels(0, 1),
    STREAMS_VERSION: Levels(0, 1),
    "transaction.version": Levels(0, 2),
}
# What a bus at level 2 (``state.level``) adds: a process of level 1 cannot write or read the records.
SUPPORTED = _AT_LEVEL_1 | {METADATA_VERSION: Levels(21, 33), "share.version": Levels(0, 2)}
# The metadata version of Kafka 4.1. A log has it unless another one was chosen.
USUAL_METADATA_VERSION = 27
# No record has the level of this feature. It is 1 as soon as the metadata log has the voters.
KRAFT_LEVELS = Levels(0, 1)
# What a gateway supports.
SERVED = SUPPORTED | {ELIGIBLE_VERSION: Levels(0, 1), KRAFT_VERSION: KRAFT_LEVELS}
# The newest metadata version of each release of Kafka.
METADATA_VERSIONS = {"3.9": 21, "4.0": 25, "4.1": USUAL_METADATA_VERSION, "4.2": 29, "4.3": 30, "4.4": 33}
# The metadata version from which on brokers tell which log directories are cordoned (KIP-1066).
CORDONING_SINCE = METADATA_VERSIONS["4.3"]
# The one from which on the host of an ACL may be a network (KIP-1276).
CIDR_SINCE = 32
# The one from which on the registration of a controller may be removed (KIP-1312).
UNREGISTERS_CONTROLLERS_SINCE = 33
# The level of a feature in a freshly formatted cluster, from a metadata version on.
_BEGINNINGS = (
    ("group.version", 1, 22),
    ("transaction.version", 2, 24),
    ("share.version", 1, 28),
    (STREAMS_VERSION, 1, 29),
    ("share.version", 2, 31),
)


def supported_at(level: int) -> dict[str, Levels]:
    """Return the features' levels that may be chosen on a bus at ``level`` (``state.level``)."""
    return _AT_LEVEL_1 if level < LEVEL_OF_KAFKA_4_3 else SUPPORTED


def newest_metadata_version(features: Iterable[Feature], bus_level: int) -> int:
    """Return the newest metadata version in the ``features`` of some brokers that a bus at a level knows."""
    supported = [feature.max_version for feature in features if feature.name == METADATA_VERSION]
    return min(max(supported, default=USUAL_METADATA_VERSION), supported_at(bus_level)[METADATA_VERSION].high)


def first_levels(metadata_version: int = USUAL_METADATA_VERSION) -> dict[str, int]:
    """Return the levels with which a log of ``metadata_version`` begins. Any other feature has level 0."""
    others = {name: level for name, level, since in _BEGINNINGS if metadata_version >= since}
    return {METADATA_VERSION: metadata_version, **others}


def not_supported(who: str, levels: Levels | None, level: int) -> str | None:
    """Return why a feature cannot have a level; None if it can."""
    if levels is None or levels.high == 0:
        return None if level == 0 and levels is not None else f"{who} does not support the feature"
    if not levels.low <= level <= levels.high:
        return f"{who} supports levels {levels.low} to {levels.high}"
    return None
