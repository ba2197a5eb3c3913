"""The engine's settings that brokers act on but read from their file only."""

from collections.abc import Mapping, Sequence

import msgspec

from cli.errors import WrongUse
from conf.layers import as_text
from state.cluster import Cluster
from state.policy import BROKER_NAMES

# They cannot change while a broker runs.
BROKER_FILE_SETTINGS = (
    "broker.heartbeat.interval.ms",
    "default.replication.factor",
    "num.partitions",
    "replica.lag.time.max.ms",
)
# Brokers of Kafka 4 get this one from the metadata log.
ZOOKEEPER_FILE_SETTINGS = (*BROKER_FILE_SETTINGS, "min.insync.replicas")


def check_not_overruled(given: Mapping[str, str]) -> None:
    """Refuse settings of brokers that the engine decides by, and overrules in brokers' files. Raises ``WrongUse``."""
    overruled = sorted(set(given) & set(BROKER_NAMES))
    if overruled:
        lines = ", ".join(f"{name} = {given[name]}" for name in overruled)
        raise WrongUse(
            f"--set {overruled[0]}: the engine decides by its own value, which overrules the brokers' files. Put "
            f"'{lines}' into the engine's file (--conf), or use kafka-configs --entity-type brokers --entity-default "
            "once the cluster is up"
        )


def broker_settings(cluster: Cluster, names: Sequence[str] = BROKER_FILE_SETTINGS) -> dict[str, str]:
    """Return the engine's settings that brokers act on but read from their file only, as they are in force."""
    values = msgspec.to_builtins(cluster.policy)
    return {name: as_text(values[name]) for name in names}
