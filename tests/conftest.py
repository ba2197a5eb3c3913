"""What tests of several folders share: one real Kafka node, started when the first of them asks for it."""

from collections.abc import Iterator

import pytest

from isrflow.brokers.kafka.cluster import KafkaCluster, plain_specs
from isrflow.conf.jars import fetch


@pytest.fixture(scope="session")
def kafka_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a plain Kafka node, which ends with the session; whoever uses it takes a prefix of its own."""
    fetch("kafka-broker")
    cluster = KafkaCluster.create(tmp_path_factory.mktemp("kafka"), plain_specs(1))
    try:
        cluster.up()
        yield cluster.bootstrap
    finally:
        cluster.kill()
