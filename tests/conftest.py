"""What tests of several folders share: one real Kafka node, started when the first of them asks for it."""

from collections.abc import Iterator

import pytest

from brokers.launch.kafka.cluster import KafkaCluster, plain_specs
from conf.jars import fetch


@pytest.fixture(scope="session")
def kafka_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """A plain Kafka node, which ends with the session; every user of it takes a prefix of its own."""
    fetch("kafka-broker")
    cluster = KafkaCluster.create(tmp_path_factory.mktemp("kafka"), plain_specs(1))
    try:
        cluster.up()
        yield cluster
    finally:
        cluster.kill()


@pytest.fixture(scope="session")
def kafka_servers(kafka_node: KafkaCluster) -> str:
    """The address of the plain Kafka node."""
    return kafka_node.bootstrap
