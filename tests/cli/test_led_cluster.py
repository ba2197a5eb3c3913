"""Which of the engine's settings brokers get in their files."""

from cli.cluster.led_cluster import broker_settings
from state.cluster import Cluster


def test_brokers_files_get_the_engines_settings_in_force() -> None:
    started, altered = {"num.partitions": "6", "min.insync.replicas": "2"}, {"default.replication.factor": "3"}
    assert broker_settings(Cluster(settings=started, config=altered | {"num.partitions": "many"})) == {
        "broker.heartbeat.interval.ms": "2000",
        "default.replication.factor": "3",
        "num.partitions": "6",
        "replica.lag.time.max.ms": "30000",
    }
