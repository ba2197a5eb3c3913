"""Peers of a gateway that are not who they should be: no access, no crash, nothing left behind."""

import contextlib
import datetime
import os
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from brokers.gateways.kraft.messages import encode_request, framed
from brokers.wire.errors import ErrorCode
from conf.security.authority import Authority
from conf.security.tls import TlsFiles, client_contexts
from tests.support.controller_client import ControllerClient, key_of
from tests.support.gateway_in_process import InProcessQuorum, heartbeat
from tests.support.secure_quorum import SecureQuorum
from tests.support.waiting import wait_until

# Half-open connections: so many portions, of so many each. So many of each portion stay open during the next one.
PORTIONS, PORTION, LEFT_OPEN = 100, 100, 20
REFUSED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


@pytest.fixture(scope="module")
def quorum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureQuorum]:
    quorum = SecureQuorum(
        tmp_path_factory.mktemp("secure"),
        max_connections_unauthenticated=20,
        authentication_timeout_ms=60_000,
        super_users="User:admin",
    )
    yield quorum
    # If the gateway ended by itself, this raises its error.
    quorum.stop()


def refuses_handshake(quorum: SecureQuorum, context: ssl.SSLContext) -> bool:
    """Return whether a client with this context gets nothing: TLS 1.3 tells it so when it first reads."""
    try:
        client = ControllerClient(quorum.port, context)
        try:
            client.ask("ApiVersions", ClientSoftwareName="a", ClientSoftwareVersion="1")
        finally:
            client.close()
    except (ssl.SSLError, ConnectionError):
        return True
    return False


def test_a_broker_registers_with_its_own_certificate_only(quorum: SecureQuorum) -> None:
    one, two = quorum.client_of("broker-1"), quorum.client_of("broker-2")
    epochs = quorum.join(one, 1)
    stolen = two.ask("BrokerRegistration", **quorum.registration(1, "B"))
    assert stolen["ErrorCode"] == REFUSED
    fenced = two.ask("BrokerHeartbeat", **heartbeat(1, epochs[1], WantFence=True))
    assert fenced["ErrorCode"] == REFUSED
    change = two.ask("AlterPartition", BrokerId=1, BrokerEpoch=epochs[1], Topics=[])
    assert change["ErrorCode"] == REFUSED
    assert two.ask("AllocateProducerIds", BrokerId=1, BrokerEpoch=epochs[1])["ErrorCode"] == REFUSED
    assert two.fetch(0, 0, replica=1)["ErrorCode"] == REFUSED
    assert quorum.broker(1)["state"] == "active"
    assert one.ask("BrokerHeartbeat", **heartbeat(1, epochs[1]))["ErrorCode"] == 0
    assert "CurrentLeader" in one.fetch(0, 0, replica=1)
    for client in (one, two):
        client.close()


@pytest.mark.parametrize("name", ["admin", "broker-x", "broker-01", "gateway-100"])
def test_no_other_certificate_may_do_what_brokers_do(quorum: SecureQuorum, name: str) -> None:
    client = quorum.client_of(name) if name != "gateway-100" else quorum.client(name=name)
    for number in (1, 7):
        assert client.ask("BrokerRegistration", **quorum.registration(number))["ErrorCode"] == REFUSED
    assert client.ask("BrokerHeartbeat", **heartbeat(1, 1))["ErrorCode"] == REFUSED
    assert client.fetch(0, 0)["ErrorCode"] == REFUSED
    values = {"RequestData": b"", "RequestPrincipal": None, "ClientHostAddress": bytes(4)}
    assert client.ask("Envelope", **values)["ErrorCode"] == REFUSED, "only a broker may say whose request it passes on"
    # Every client that is let in may send the first request, and only a super user the second one.
    assert client.ask("ApiVersions", ClientSoftwareName="a", ClientSoftwareVersion="1")["ErrorCode"] == 0
    topic = {"Name": f"by-{name}", "NumPartitions": 1, "ReplicationFactor": 1, "Assignments": [], "Configs": []}
    created = client.ask("CreateTopics", Topics=[topic], timeoutMs=10_000, validateOnly=True)["Topics"][0]
    assert (created["ErrorCode"] == ErrorCode.TOPIC_AUTHORIZATION_FAILED) == (name != "admin")
    client.close()


def test_a_brokers_internal_topics_are_not_for_others(quorum: SecureQuorum) -> None:
    topic = {"Name": "__consumer_offsets", "NumPartitions": 1, "ReplicationFactor": 1, "Assignments": [], "Configs": []}
    for name, refused in (("eve", True), ("broker-3", False)):
        client = quorum.client_of(name)
        answer = client.ask("CreateTopics", Topics=[topic], timeoutMs=10_000, validateOnly=True)["Topics"][0]
        assert (answer["ErrorCode"] == ErrorCode.TOPIC_AUTHORIZATION_FAILED) == refused
        client.close()


def test_certificates_that_prove_nothing_are_refused(quorum: SecureQuorum, tmp_path: Path) -> None:
    authority = quorum.authority
    now = datetime.datetime.now(datetime.UTC)
    day = datetime.timedelta(days=1)
    authority.issue("broker-4", begin=now - 3 * day, valid=day)
    assert refuses_handshake(quorum, quorum.tls("broker-4")), "it has expired"
    authority.issue("broker-4", begin=now + 3 * day, valid=day)
    assert refuses_handshake(quorum, quorum.tls("broker-4")), "it is not valid yet"
    assert refuses_handshake(quorum, quorum.tls()), "there is none"
    stranger = TlsFiles(
        keystore=str(Authority(tmp_path / "other").issue("broker-1")), truststore=str(authority.certificate_file)
    )
    assert refuses_handshake(quorum, client_contexts(stranger)()), "another authority signed it"
    old = quorum.tls("broker-0")
    old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_2
    assert refuses_handshake(quorum, old)
    authority.issue("broker-4")
    assert not refuses_handshake(quorum, quorum.tls("broker-4"))


def test_plain_text_to_the_tls_port_gets_nothing(quorum: SecureQuorum) -> None:
    body = encode_request(key_of("BrokerRegistration"), 4, 1, "test", quorum.registration(9))
    with socket.create_connection(("127.0.0.1", quorum.port), 30) as plain:
        plain.sendall(framed(body))
        heard = b""
        with contextlib.suppress(ConnectionError):
            while more := plain.recv(1_000):
                heard += more
    # Nothing, or an alert of TLS.
    assert len(heard) < 10
    assert 9 not in {broker["broker"] for broker in quorum.view()["brokers"]}


def test_ten_thousand_half_open_connections_shut_nobody_out(quorum: SecureQuorum) -> None:
    broker = quorum.client(name="broker-0")
    before = len(os.listdir("/proc/self/fd"))
    half_open: list[socket.socket] = []
    # In portions, because each end of each connection is a descriptor of this process.
    for portion in range(PORTIONS):
        for number in range(PORTION):
            one = socket.create_connection(("127.0.0.1", quorum.port))
            if number % 3 == 1:
                # The beginning of a ClientHello.
                one.sendall(b"\x16\x03\x01\x02\x00\x01")
            half_open.append(one)
        if portion % 10 == 0:
            newcomer = quorum.client(name="broker-0")
            assert "CurrentLeader" in newcomer.fetch(0, 0)
            newcomer.close()
        for one in half_open[:-LEFT_OPEN]:
            one.close()
        half_open = half_open[-LEFT_OPEN:]
    for one in half_open:
        one.close()
    # A connection that was there before is not the one that ends.
    assert "CurrentLeader" in broker.fetch(0, 0)
    broker.close()
    wait_until(lambda: len(os.listdir("/proc/self/fd")) <= before + 10, "the connections to be gone")


def test_a_gateway_copies_another_ones_log_with_its_certificate(tmp_path: Path) -> None:
    quorum = SecureQuorum(tmp_path)
    try:
        thief = quorum.client_of("broker-1")
        partition = {
            "Partition": 0,
            "CurrentLeaderEpoch": -1,
            "SnapshotId": {"EndOffset": -1, "Epoch": -1},
            "Position": 0,
        }
        asked = {"ClusterId": quorum.cluster_id, "Topics": [{"Name": "__gateway_log", "Partitions": [partition]}]}
        assert thief.ask("FetchSnapshot", 1, **asked)["ErrorCode"] == REFUSED
        thief.close()
        other = quorum.client(name="gateway-100")
        assert other.ask("FetchSnapshot", 1, **asked)["ErrorCode"] == 0
        other.close()
    finally:
        quorum.stop()


def test_a_gateway_without_security_asks_nobody(tmp_path: Path) -> None:
    quorum = InProcessQuorum(tmp_path)
    try:
        client = quorum.client()
        quorum.join(client, 1)
        names = client.ask("ApiVersions", ClientSoftwareName="a", ClientSoftwareVersion="1")["ApiKeys"]
        assert not {17, 36} & {one["ApiKey"] for one in names}
        client.close()
    finally:
        quorum.stop()
