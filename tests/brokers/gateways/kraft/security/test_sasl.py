"""SASL on a gateway's listener: users of a file, and clients that do not play by the rules."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from brokers.gateways.kraft.messages import decode_message, framed
from brokers.gateways.kraft.rebuilding import peer
from brokers.gateways.kraft.security.credentials import MECHANISMS
from brokers.gateways.kraft.security.settings import security_of
from brokers.gateways.kraft.settings import settings_of
from brokers.wire.errors import ErrorCode
from brokers.wire.security.connecting import Client
from brokers.wire.security.scram import ScramClient
from bus.interface import BusError
from bus.kafka.connection import Connection
from isrflow.kafka.address import parse
from isrflow.kafka.client_config import VARIABLE
from tests.support.controller_client import ControllerClient
from tests.support.secure_quorum import SecureQuorum
from tests.support.waiting import wait_until

PASSWORD = "canary-of-sasl"
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
VERSIONS = {"ClientSoftwareName": "a", "ClientSoftwareVersion": "1"}


class SaslQuorum(SecureQuorum):
    """A gateway that asks for a password over TLS, and for no certificate."""

    def __init__(self, directory: Path) -> None:
        users = directory / "users.toml"
        users.write_text("".join(f'[{name}]\npassword = "{PASSWORD}"\n' for name in ("broker-1", "gateway-100", "eve")))
        super().__init__(
            directory,
            security_protocol="SASL_SSL",
            sasl_enabled_mechanisms=",".join(MECHANISMS),
            sasl_credentials_file=str(users),
        )

    def client(self, gateway: int = 100, name: str = "broker-1") -> ControllerClient:
        client = self.stranger()
        assert handshake(client) == 0
        assert client.ask("SaslAuthenticate", AuthBytes=f"\0{name}\0{PASSWORD}".encode())["ErrorCode"] == 0
        return client

    def stranger(self) -> ControllerClient:
        """Connect without a proof."""
        return ControllerClient(self.port, self.tls())


def handshake(client: ControllerClient, mechanism: str = "PLAIN") -> int:
    return int(client.ask("SaslHandshake", Mechanism=mechanism)["ErrorCode"])


@pytest.fixture(scope="module")
def quorum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SaslQuorum]:
    quorum = SaslQuorum(tmp_path_factory.mktemp("sasl"))
    yield quorum
    quorum.stop()


def is_closed(client: ControllerClient) -> bool:
    try:
        client.send("ApiVersions", **VERSIONS)
        client.frame()
    except ConnectionError:
        return True
    finally:
        client.close()
    return False


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_client_that_proves_a_password_is_its_user(quorum: SaslQuorum, tmp_path: Path, mechanism: str) -> None:
    async def copied(user: str, password: str) -> None:
        client = Client(quorum.tls, mechanism, user, lambda: password)
        into = tmp_path / user / mechanism
        into.mkdir(parents=True)
        await peer.copy(quorum.voters[0], quorum.cluster_id, into, client)

    asyncio.run(copied("gateway-100", PASSWORD))
    assert any((tmp_path / "gateway-100" / mechanism).iterdir())
    with pytest.raises(peer.PeerError, match="CLUSTER_AUTHORIZATION_FAILED"):
        asyncio.run(copied("eve", PASSWORD))
    with pytest.raises(peer.PeerError, match="is refused with error 58") as caught:
        asyncio.run(copied("gateway-1", "wrong"))
    assert "wrong" not in str(caught.value)


def test_a_password_is_proved_while_no_name_server_answers(quorum: SaslQuorum) -> None:
    answers = threading.Event()
    quorum.gateways[100].occupy_threads(answers)
    try:
        quorum.client().close()
    finally:
        answers.set()


def test_a_user_is_a_broker_in_its_own_name_only(quorum: SaslQuorum) -> None:
    client = quorum.client()
    quorum.join(client, 1)
    refused = client.ask("BrokerRegistration", **quorum.registration(2))
    assert refused["ErrorCode"] == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert handshake(client) == ErrorCode.ILLEGAL_SASL_STATE, "a connection keeps its user"
    client.close()


def test_nothing_is_answered_before_the_proof(quorum: SaslQuorum) -> None:
    client = quorum.stranger()
    keys = {one["ApiKey"] for one in client.ask("ApiVersions", **VERSIONS)["ApiKeys"]}
    assert {17, 36} <= keys
    client.send("BrokerRegistration", **quorum.registration(9))
    with pytest.raises(ConnectionError):
        client.frame()
    client.close()
    future = quorum.stranger()
    future.send_bytes(framed(bytes.fromhex("0012007f00000007000178000000 00")))
    refusal = decode_message("ApiVersionsResponse", 0, future.frame()[4:])
    assert [(one["ApiKey"], one["MaxVersion"]) for one in refusal["ApiKeys"]] == [(18, 4)]
    assert handshake(future) == ErrorCode.NONE, "the client asks again in a version that is known"
    future.close()
    early = quorum.stranger()
    assert early.ask("SaslAuthenticate", AuthBytes=b"")["ErrorCode"] == ErrorCode.ILLEGAL_SASL_STATE
    assert is_closed(early)
    unknown = quorum.stranger()
    assert handshake(unknown, "GSSAPI") == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert is_closed(unknown)
    old = quorum.stranger()
    assert old.ask("SaslHandshake", 0, Mechanism="PLAIN")["ErrorCode"] == ErrorCode.UNSUPPORTED_VERSION
    assert is_closed(old)
    long = quorum.stranger()
    long.send_bytes((1 << 30).to_bytes(4, "big"))
    assert is_closed(long)
    chatty = quorum.stranger()
    for _ in range(16):
        chatty.ask("ApiVersions", **VERSIONS)
    assert is_closed(chatty)


@pytest.mark.parametrize("proof", [b"", b"\0broker-1\0", b"\0broker-1\0wrong", b"broker-1\0eve\0" + PASSWORD.encode()])
def test_a_wrong_password_is_refused_in_the_same_words(quorum: SaslQuorum, proof: bytes) -> None:
    client = quorum.stranger()
    assert handshake(client) == 0
    answer = client.ask("SaslAuthenticate", AuthBytes=proof)
    assert answer["ErrorCode"] == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer["ErrorMessage"] == "Authentication failed: Invalid username or password"
    assert is_closed(client)


def test_replayed_messages_of_scram_are_refused(quorum: SaslQuorum) -> None:
    exchange = ScramClient("SCRAM-SHA-512", "broker-1", PASSWORD)
    opening = exchange.first()
    heard: list[bytes] = []
    for _ in range(2):
        client = quorum.stranger()
        assert handshake(client, "SCRAM-SHA-512") == 0
        first = client.ask("SaslAuthenticate", AuthBytes=opening)
        assert first["ErrorCode"] == 0
        # The second time what was heard the first time.
        heard = heard or [exchange.final(bytes(first["AuthBytes"]))]
        answer = client.ask("SaslAuthenticate", AuthBytes=heard[0])
        heard.append(b"%d" % answer["ErrorCode"])
        client.close()
    assert heard[1:] == [b"0", b"%d" % ErrorCode.SASL_AUTHENTICATION_FAILED]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka_proves_a_password_and_says_why_it_is_refused(
    quorum: SaslQuorum, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mechanism: str
) -> None:
    file = tmp_path / "client.properties"
    monkeypatch.setenv(VARIABLE, str(file))

    def client(password: str) -> Connection:
        file.write_text(
            f"security.protocol=SASL_SSL\nsasl.mechanism={mechanism}\nsasl.username=eve\nsasl.password={password}\n"
            f"ssl.truststore.location={quorum.authority.certificate_file}\n"
        )
        return Connection(parse(f"kafka://127.0.0.1:{quorum.port}"))

    def refusal(kafka: Connection) -> str:
        with pytest.raises(BusError) as caught, kafka.errors():
            # A gateway does not serve it.
            kafka.admin.list_topics(timeout=1)
        return str(caught.value)

    wrong, said = client("another-canary"), "Authentication failed: Invalid username or password"
    wait_until(lambda: said in refusal(wrong), "the refusal")
    assert "uthentication" not in refusal(client(PASSWORD))


def test_no_output_has_a_password(quorum: SaslQuorum, capfd: pytest.CaptureFixture[str]) -> None:
    with capture_logs() as logs:
        for proof in (f"\0broker-1\0{PASSWORD}x", f"{PASSWORD}\0x\0y", f"\0x\0{PASSWORD}"):
            client = quorum.stranger()
            assert handshake(client) == 0
            answer = client.ask("SaslAuthenticate", AuthBytes=proof.encode())
            client.close()
            assert answer["ErrorCode"] and PASSWORD not in str(answer)
        client = quorum.client()
        client.ask("BrokerRegistration", **quorum.registration(2))
        client.close()
    gateway = quorum.gateways[100].gateway
    stored = b"".join(file.read_bytes() for file in quorum.directory.glob("bus.db*"))
    # Loggers that another test has set up write to the terminal instead.
    shown = f"{logs} {capfd.readouterr()} {gateway.measures()} {quorum.view()}".encode()
    assert PASSWORD.encode() not in shown + stored


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"security.protocol": "SSL"}, "needs ssl.keystore.location"),
        ({"security.protocol": "SSL", "ssl.client.auth": "none"}, "no broker could prove that it is one"),
        ({"security.protocol": "SSL", "ssl.keystore.location": "/x"}, "needs ssl.truststore.location"),
        ({"security.protocol": "SASL_PLAINTEXT", "sasl.enabled.mechanisms": "PLAIN"}, "needs SASL_SSL"),
        ({"security.protocol": "SASL_PLAINTEXT", "sasl.enabled.mechanisms": "GSSAPI"}, "expected some of PLAIN, SCRAM"),
        ({"security.protocol": "SASL_PLAINTEXT"}, "needs sasl.credentials.file"),
        ({"security.protocol": "SASL_PLAINTEXT", "sasl.credentials.file": "/x"}, "sasl.credentials.file: /x: No such"),
        ({"authorizer.class.name": AUTHORIZER}, "authorizer.class.name on a PLAINTEXT listener stop"),
        ({"super.users": "User:a"}, "super.users on a PLAINTEXT listener stop no one: .*allow.authorizer.on.plaintext"),
    ],
)
def test_settings_that_cannot_work_are_refused_by_name(given: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        security_of(settings_of(given))


def test_access_control_without_authentication_must_be_asked_for_by_name() -> None:
    asked = {"authorizer.class.name": AUTHORIZER, "allow.authorizer.on.plaintext": "true"}
    assert security_of(settings_of(asked)) is None


def test_the_connections_of_a_removed_user_end(tmp_path: Path) -> None:
    quorum = SaslQuorum(tmp_path)
    removed, staying, idle = quorum.client(name="eve"), quorum.client(), quorum.client(name="eve")
    try:
        users = tmp_path / "users.toml"
        users.write_text("".join(f'[{name}]\npassword = "{PASSWORD}"\n' for name in ("broker-1", "gateway-100")))

        def has_ended() -> bool:
            try:
                return bool(removed.ask("DescribeCluster", EndpointType=2)["ErrorCode"])
            except ConnectionError:
                return True

        wait_until(has_ended, "the connection of the removed user to end")
        with pytest.raises(ConnectionError):
            idle.frame()
        assert staying.ask("DescribeCluster", EndpointType=2)["ErrorCode"] == 0
    finally:
        for client in (removed, staying, idle):
            client.close()
        quorum.stop()
