"""A real broker that shows its certificate to a gateway: a topic is made, and records go through it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from brokers.launch.kafka.properties import NodeSpec
from brokers.wire.errors import ErrorCode
from cli.cluster.certificates import FOLDER, Certificates
from conf.security.authority import Authority
from conf.security.tls import TlsFiles, client_contexts
from tests.support.controller_client import ControllerClient
from tests.support.gateway_in_process import heartbeat
from tests.support.real_cluster import POLICY, RealCluster
from tests.support.rules_engine import RulesEngine
from tests.support.waiting import TIMEOUT_S

pytestmark = pytest.mark.cluster
RECORDS = 100


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RealCluster]:
    certificates = Certificates(tmp_path)
    certificates.issue(["gateway-100", "broker-1"])
    spec = certificates.given_to(NodeSpec(node_id=1, roles=("broker",), voters=()))
    found = RealCluster(tmp_path, brokers=1, gateway_settings=certificates.gateway_settings(100), **spec.overrides)
    engine = RulesEngine()
    engine.start(found.bus_path, **POLICY)
    try:
        found.start()
        yield found
    finally:
        found.stop()
        engine.stop()


def test_a_broker_with_its_certificate_is_led(cluster: RealCluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic("t", 1, 1)], operation_timeout=TIMEOUT_S)["t"].result(TIMEOUT_S)
    failed: list[object] = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "enable.idempotence": True})
    for number in range(RECORDS):
        producer.produce("t", b"%d" % number, on_delivery=lambda error, _: failed.append(error) if error else None)
    assert producer.flush(TIMEOUT_S) == 0
    assert failed == []
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "g"})
    consumer.assign([TopicPartition("t", 0, 0)])
    values = [message.value() for message in consumer.consume(RECORDS, timeout=TIMEOUT_S)]
    consumer.close()
    assert values == [b"%d" % number for number in range(RECORDS)]

    # Another broker's certificate does not fence it.
    authority = Authority(cluster.directory / FOLDER)
    thief = TlsFiles(keystore=str(authority.issue("broker-2")), truststore=str(authority.certificate_file))
    client = ControllerClient(cluster.voters[0].port, client_contexts(thief)())
    [broker] = cluster.view()["brokers"]
    answer = client.ask("BrokerHeartbeat", **heartbeat(1, broker["broker_epoch"], WantFence=True))
    client.close()
    assert answer["ErrorCode"] == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert cluster.view()["brokers"][0]["state"] == "active"
