"""The engine's settings that brokers act on but read from their file only."""

from collections.abc import Sequence

import msgspec

from conf.loader import as_text
from state.cluster import Cluster

# They cannot change while a broker runs.
BROKER_FILE_SETTINGS = (
    "broker.heartbeat.interval.ms",
    "default.replication.factor",
    "num.partitions",
    "replica.lag.time.max.ms",
)
# Brokers of Kafka 4 get this one from the metadata log.
ZOOKEEPER_FILE_SETTINGS = (*BROKER_FILE_SETTINGS, "min.insync.replicas")


def broker_settings(cluster: Cluster, names: Sequence[str] = BROKER_FILE_SETTINGS) -> dict[str, str]:
    """Return the engine's settings that brokers act on but read from their file only, as they are in force."""
    values = msgspec.to_builtins(cluster.policy)
    return {name: as_text(values[name]) for name in names}
