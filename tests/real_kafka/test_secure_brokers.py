"""Real brokers that show certificates to a gateway and to each other, and enforce the same ACLs as the gateway."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewPartitions,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from brokers.launch.kafka.tools import run_tool
from brokers.launch.ports import free_ports
from brokers.wire.errors import ErrorCode
from cli.cluster.access import SECURE_SETTINGS, access_of_brokers, access_of_gateways, secure_bootstrap
from cli.cluster.certificates import FOLDER, Certificates
from conf.loader import load
from conf.security.authority import Authority
from conf.security.tls import TlsFiles, client_contexts
from tests.support.clients import ConfluentSender, error_name_of, lost_records, read_all
from tests.support.controller_client import ControllerClient
from tests.support.gateway_in_process import heartbeat
from tests.support.real_cluster import POLICY, RealCluster, led_by_rules
from tests.support.waiting import TIMEOUT_S, wait_until

pytestmark = pytest.mark.kraft
RECORDS = 100
DENIED = "TOPIC_AUTHORIZATION_FAILED"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RealCluster]:
    certificates = Certificates(tmp_path)
    certificates.issue(["gateway-100", "broker-1", "broker-2"])
    access = access_of_gateways(load(None, SECURE_SETTINGS))
    found = RealCluster(tmp_path, brokers=2, gateway_settings=certificates.gateway_settings(100) | access)
    nodes = list(found.kafka.nodes.values())
    for node, port in zip(nodes, free_ports(2), strict=True):
        node.spec = certificates.given_to(node.spec, port)
    for node in nodes:
        node.engine_settings = access_of_brokers(access, nodes)
    with led_by_rules(found, **(POLICY | {"broker_session_timeout_ms": 60_000})):
        yield found


def with_certificate(cluster: RealCluster, name: str) -> dict[str, Any]:
    """Return the settings of a client that shows a certificate."""
    authority = Authority(cluster.directory / FOLDER)
    file = str(authority.issue(name))
    return {
        "bootstrap.servers": secure_bootstrap(cluster.kafka.nodes.values()),
        "security.protocol": "SSL",
        "ssl.ca.location": str(authority.certificate_file),
        "ssl.certificate.location": file,
        "ssl.key.location": file,
        "log_level": 0,
    }


def error_of_record(**conf: Any) -> str:
    """Send a record to the topic, and return the error of its delivery."""
    told: list[Any] = []
    producer = Producer({"acks": "all", **conf})
    producer.produce("t", b"x", partition=0, on_delivery=lambda error, _: told.append(error))
    assert producer.flush(TIMEOUT_S) == 0
    return "NONE" if told[0] is None else str(told[0].name())


def error_of_growth(**conf: Any) -> str:
    """Ask for more partitions, which the gateway decides on, and return the error."""
    admin = AdminClient(conf)
    [asked] = admin.create_partitions([NewPartitions("t", 3)], validate_only=True).values()
    return error_name_of(asked)


def test_brokers_and_the_gateway_know_each_other_and_enforce_the_same_acls(cluster: RealCluster) -> None:
    anybody = {"bootstrap.servers": cluster.bootstrap, "log_level": 0}
    client, alice = with_certificate(cluster, "client"), with_certificate(cluster, "alice")
    cluster.create(NewTopic("t", 2, 2))
    cluster.wait_for_isr("t", 2)
    sender = ConfluentSender(cluster.bootstrap)
    for number in range(RECORDS):
        sender.send("t", number % 2, b"%d" % number)
    sender.finish(TIMEOUT_S)
    read = read_all(cluster.bootstrap, "t", 2)
    assert (sender.failed, lost_records(sender.acknowledged, read), len(read)) == ([], {}, RECORDS)

    # Once the topic has ACLs, they count for brokers and for the gateway.
    admin = AdminClient(client)
    for operation in (AclOperation.WRITE, AclOperation.ALTER):
        of_alice = ("User:alice", "*", operation, AclPermissionType.ALLOW)
        binding = AclBinding(ResourceType.TOPIC, "t", ResourcePatternType.LITERAL, *of_alice)
        admin.create_acls([binding])[binding].result(TIMEOUT_S)
    wait_until(lambda: error_of_record(**anybody) == DENIED, "brokers to have read the ACLs")
    assert [error_of_growth(**one) for one in (anybody, alice, client)] == [DENIED, "NONE", "NONE"]
    assert [error_of_record(**one) for one in (alice, client)] == ["NONE", "NONE"]
    told = run_tool(
        "AclCommand",
        client["bootstrap.servers"],
        ["--list", "--command-config", str(cluster.directory / FOLDER / "client.properties")],
    )
    assert told.count("User:alice") == 2

    # Another broker's certificate does not fence this one.
    authority = Authority(cluster.directory / FOLDER)
    thief = TlsFiles(keystore=str(authority.issue("broker-3")), truststore=str(authority.certificate_file))
    listener = ControllerClient(cluster.voters[0].port, client_contexts(thief)())
    broker = next(held for held in cluster.view()["brokers"] if held["broker"] == 1)
    answer = listener.ask("BrokerHeartbeat", **heartbeat(1, broker["broker_epoch"], WantFence=True))
    listener.close()
    assert answer["ErrorCode"] == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert cluster.states() == {1: "active", 2: "active"}
