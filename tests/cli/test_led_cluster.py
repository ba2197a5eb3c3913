"""What brokers are given of the settings of the engine that leads them."""

from cli.cluster.led_cluster import broker_settings
from state.cluster import Cluster


def test_brokers_get_in_their_files_what_is_in_force_of_the_engines_settings() -> None:
    started, altered = {"num.partitions": "6", "min.insync.replicas": "2"}, {"default.replication.factor": "3"}
    assert broker_settings(Cluster(settings=started, config=altered | {"num.partitions": "many"})) == {
        "broker.heartbeat.interval.ms": "2000",
        "default.replication.factor": "3",
        "num.partitions": "6",
        "replica.lag.time.max.ms": "30000",
    }
