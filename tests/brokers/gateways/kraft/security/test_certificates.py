"""A gateway that asks for certificates and requires none, and certificates that change while it runs."""

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from brokers.wire.errors import ErrorCode
from conf.security.authority import KEY, Authority
from conf.security.tls import TlsFiles, client_contexts
from tests.support.controller_client import ControllerClient
from tests.support.secure_quorum import SecureQuorum
from tests.support.waiting import wait_until

REFUSED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


@pytest.fixture
def quorum(tmp_path: Path) -> Iterator[SecureQuorum]:
    quorum = SecureQuorum(tmp_path, ssl_client_auth="requested")
    yield quorum
    quorum.stop()


def test_a_client_without_a_certificate_may_only_look(quorum: SecureQuorum) -> None:
    client = quorum.client(name="")
    assert client.ask("ApiVersions", ClientSoftwareName="a", ClientSoftwareVersion="1")["ErrorCode"] == 0
    assert client.ask("DescribeCluster", EndpointType=2)["ErrorCode"] == 0
    assert client.ask("UnregisterBroker", BrokerId=1)["ErrorCode"] == REFUSED
    assert client.ask("BrokerRegistration", **quorum.registration(1))["ErrorCode"] == REFUSED
    client.close()
    # Without super.users everybody who is let in may change everything, as in Kafka without an authorizer.
    known = quorum.client_of("alice")
    assert known.ask("UnregisterBroker", BrokerId=1)["ErrorCode"] == ErrorCode.BROKER_ID_NOT_REGISTERED
    known.close()


def test_a_broker_registers_by_the_default_rules(tmp_path: Path) -> None:
    quorum = SecureQuorum(tmp_path)
    broker, other = quorum.client_of("broker-1"), quorum.client_of("broker-2")
    try:
        assert quorum.settings.keys().isdisjoint({"ssl_principal_mapping_rules", "broker_principal"})
        assert broker.ask("BrokerRegistration", **quorum.registration(1))["ErrorCode"] == 0
        assert other.ask("BrokerRegistration", **quorum.registration(1))["ErrorCode"] == REFUSED
    finally:
        broker.close()
        other.close()
        quorum.stop()


def test_changed_certificates_are_in_force_without_a_restart(quorum: SecureQuorum) -> None:
    staying = quorum.client_of("broker-1")
    former = quorum.authority.certificate_file.read_bytes()
    # An authority without its key is made again.
    (quorum.authority.folder / KEY).unlink()
    quorum.authority = Authority(quorum.authority.folder)
    quorum.authority.issue("gateway-100")
    quorum.authority.issue("broker-2")
    assert quorum.authority.certificate_file.read_bytes() != former

    def is_in_force() -> bool:
        try:
            client = quorum.client(name="broker-2")
        except (ssl.SSLError, ConnectionError):
            return False
        client.close()
        return True

    wait_until(is_in_force, "the new certificates to be in force")
    # The former authority's certificates count no longer, except where a connection is open. That one goes first: an
    # error of a connection may come again from the thread's next one (github.com/python/cpython/issues/148594).
    quorum.join(staying, 1)
    staying.close()
    old = TlsFiles(
        keystore=str(quorum.authority.folder / "broker-1.pem"),
        truststore=str(quorum.authority.certificate_file),
    )
    with pytest.raises((ssl.SSLError, ConnectionError)):
        ControllerClient(quorum.port, client_contexts(old)()).ask("DescribeCluster", EndpointType=2)
