"""The features of a Kafka cluster whose levels can be changed (KIP-584, 1022), and the levels that are served."""

from typing import NamedTuple


class Levels(NamedTuple):
    """The lowest and the highest level."""

    low: int
    high: int


# Brokers alone do what these promise, except metadata.version: its level is that of the records that gateways
# write. Eligible leader replicas are left out, because the rules do not have them.
SUPPORTED = {
    "group.version": Levels(0, 1),
    "metadata.version": Levels(27, 27),
    "share.version": Levels(0, 1),
    "transaction.version": Levels(0, 2),
}
# The levels of a freshly formatted cluster of Kafka 4.1; a feature that is not here begins at 0.
FIRST_LEVELS = {"metadata.version": 27, "group.version": 1, "transaction.version": 2}


def not_supported(who: str, levels: Levels | None, level: int) -> str | None:
    """Say why a feature's level cannot be; None if it can."""
    if levels is None or levels.high == 0:
        return None if level == 0 and levels is not None else f"{who} does not support the feature"
    if not levels.low <= level <= levels.high:
        return f"{who} supports levels {levels.low} to {levels.high}"
    return None
