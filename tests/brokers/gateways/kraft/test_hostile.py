"""Hostile input on a gateway's port closes at most its own connection."""

import random
import socket
from collections.abc import Iterator

import pytest

from brokers.gateways.kraft.apis.short_messages import MESSAGE_LENGTH_MAX
from brokers.gateways.kraft.context import Context
from brokers.gateways.kraft.messages import Request, decode_message, encode_request, framed
from brokers.gateways.kraft.serving import APIS, ENVELOPE_KEY
from brokers.wire.errors import ErrorCode
from brokers.wire.schema import Values
from brokers.wire.server import Peer
from tests.support.controller_client import ControllerClient, key_of
from tests.support.gateway_in_process import InProcessQuorum, heartbeat
from tests.support.waiting import wait_until

CONNECTIONS = 20
REQUEST_BYTES = 200_000


@pytest.fixture(scope="module")
def quorum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessQuorum]:
    quorum = InProcessQuorum(
        tmp_path_factory.mktemp("quorum"), max_connections=CONNECTIONS, socket_request_max_bytes=REQUEST_BYTES
    )
    yield quorum
    # If the gateway ended by itself, this raises its error.
    quorum.stop()


def goes_on(quorum: InProcessQuorum) -> None:
    """Check that the gateway serves the next client, and a broker."""
    client = quorum.client()
    assert client.ask("ApiVersions")["ErrorCode"] == ErrorCode.NONE
    epochs = quorum.join(client, 7)
    assert client.ask("BrokerHeartbeat", **heartbeat(7, epochs[7]))["ErrorCode"] == ErrorCode.NONE
    client.close()


def envelope(client: ControllerClient, data: bytes) -> int:
    response = client.ask("Envelope", RequestData=data, ClientHostAddress=bytes(4))
    assert client.ask("ApiVersions")["ErrorCode"] == ErrorCode.NONE, "the connection stays open"
    return int(response["ErrorCode"])


@pytest.mark.parametrize(
    ("key", "version"),
    [(999, 0), (-1, 0), (3, 12), (19, 99), (19, 0), (key_of("BrokerHeartbeat"), 1), (ENVELOPE_KEY, 0), (1, 18)],
)
def test_an_unserved_api_in_an_envelope_is_refused_inside_it(client: ControllerClient, key: int, version: int) -> None:
    header = key.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big") + bytes([0, 0, 0, 1, 255, 255])
    served = key in APIS and APIS[key].min_version <= version <= APIS[key].max_version
    values = heartbeat(1, 1) if key == key_of("BrokerHeartbeat") else {}
    data = encode_request(key, version, 1, None, values) if served else header
    assert envelope(client, data) == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize("data", ["", "00", "0013", "001300070000000100", "0013000700000001ffff00ffffffffff0f"])
def test_an_unreadable_request_in_an_envelope_is_refused_inside_it(client: ControllerClient, data: str) -> None:
    assert envelope(client, bytes.fromhex(data)) == ErrorCode.INVALID_REQUEST


def test_many_empty_entries_in_few_bytes_are_refused(client: ControllerClient) -> None:
    values = {"Entries": [{"Entity": [], "Ops": []}] * 20_000, "ValidateOnly": False}
    entity = {"Entity": [{"EntityType": "", "EntityName": None}] * 20_000, "Ops": []}
    for one in (values, values | {"Entries": [entity]}):
        data = encode_request(key_of("AlterClientQuotas"), 1, 1, None, one)
        assert len(data) < 64 * 1024
        assert envelope(client, data) == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("retention.ms", "9" * 30_000),
        ("retention.ms", "\0" * 10_000),
        ("min.cleanable.dirty.ratio", "1" * 30_000 + "x"),
        ("cleanup.policy", "compact" + " " * 30_000 + "delete"),
        ("n" * 32_767, "1"),
        ("retention.ms", "\u20ac" * 10_900),
    ],
    ids=["digits", "nothing printable", "almost a number", "spaces", "name", "no number"],
)
def test_an_oversized_setting_is_refused_and_the_connection_stays_open(
    client: ControllerClient, name: str, value: str
) -> None:
    topic = {"Name": "t", "NumPartitions": 1, "ReplicationFactor": 1, "Configs": [{"Name": name, "Value": value}]}
    one = {"Name": name, "Value": value, "ConfigOperation": 0}
    resource = {"ResourceType": 2, "ResourceName": "t", "Configs": [one]}
    [created] = client.forward("CreateTopics", Topics=[topic])["Topics"]
    [altered] = client.forward("IncrementalAlterConfigs", Resources=[resource])["Responses"]
    for response in (created, altered):
        assert response["ErrorCode"] == ErrorCode.INVALID_CONFIG
        assert len(response["ErrorMessage"]) <= MESSAGE_LENGTH_MAX + 3
    twice = resource | {"Configs": [one, one]}
    [altered] = client.forward("IncrementalAlterConfigs", Resources=[twice])["Responses"]
    assert altered["ErrorCode"] == ErrorCode.INVALID_REQUEST


def test_a_failing_request_is_refused_and_the_connection_stays_open(
    client: ControllerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def failing(context: Context, request: Request, peer: Peer) -> Values:
        raise ZeroDivisionError

    async def answered_oddly(context: Context, request: Request, peer: Peer) -> Values:
        return {"Topics": [{"Name": "n" * 40_000}]}

    for handler in (failing, answered_oddly):
        monkeypatch.setitem(APIS, 19, APIS[19]._replace(handler=handler))
        [response] = client.forward("CreateTopics", Topics=[{"Name": "t"}])["Topics"]
        assert response["ErrorCode"] == ErrorCode.UNKNOWN_SERVER_ERROR
        [response] = client.ask("CreateTopics", Topics=[{"Name": "t"}])["Topics"]
        assert response["ErrorCode"] == ErrorCode.UNKNOWN_SERVER_ERROR


def test_an_unknown_version_of_api_versions_is_answered_with_the_known_ones(client: ControllerClient) -> None:
    client.send_bytes(framed(bytes.fromhex("0012 007f 00000007 0001 78 00 00 00 00".replace(" ", ""))))
    frame = client.frame()
    assert frame[:4] == bytes.fromhex("00000007")
    response = decode_message("ApiVersionsResponse", 0, frame[4:])
    assert response["ErrorCode"] == ErrorCode.UNSUPPORTED_VERSION
    assert [(one["ApiKey"], one["MaxVersion"]) for one in response["ApiKeys"]] == [(18, 4)]
    assert client.ask("ApiVersions")["ErrorCode"] == ErrorCode.NONE


@pytest.mark.parametrize(
    "data",
    [
        "7fffffff",  # longer than a gateway accepts
        "ffffffff",
        "00000000",
        "0000000a03e7000000000001ffff",  # an unknown API
        "0000000a00030000000000001fff",
        "0000000a004a000000000001ffff",  # an API that brokers serve, and controllers do not
        "00000003001200",
        "0000000c003f0001000000010001780000",  # a heartbeat that ends too soon
    ],
)
def test_nonsense_closes_its_own_connection_only(quorum: InProcessQuorum, client: ControllerClient, data: str) -> None:
    stranger = quorum.client()
    stranger.send_bytes(bytes.fromhex(data))
    with pytest.raises(ConnectionError):
        stranger.frame()
    assert client.ask("ApiVersions")["ErrorCode"] == ErrorCode.NONE


def test_a_truncated_request_is_refused_or_closes_its_connection(quorum: InProcessQuorum) -> None:
    whole = encode_request(key_of("BrokerRegistration"), 4, 1, "c", quorum.registration(8))
    for length in range(1, len(whole)):
        stranger = quorum.client()
        stranger.send_bytes(framed(whole[:length]))
        with pytest.raises(ConnectionError):
            stranger.frame()
        stranger.close()
    assert 8 not in {held["broker"] for held in quorum.view()["brokers"]}
    goes_on(quorum)


def test_random_bodies_close_at_most_their_own_connections(quorum: InProcessQuorum) -> None:
    draw = random.Random(4)
    known = [(key, version) for key, api in APIS.items() for version in range(api.min_version, api.max_version + 1)]
    answered = closed = 0
    for _ in range(400):
        key, version = draw.choice(known)
        body = draw.randbytes(draw.choice([0, 1, 5, 40, 300]))
        stranger = quorum.client()
        header = key.to_bytes(2, "big") + version.to_bytes(2, "big") + bytes([0, 0, 0, 9, 255, 255, 0])
        stranger.send_bytes(framed(header + body))
        try:
            stranger.frame()
            answered += 1
        except ConnectionError:
            closed += 1
        stranger.close()
    assert closed
    goes_on(quorum)


def test_a_client_that_never_reads_blocks_nobody(quorum: InProcessQuorum, client: ControllerClient) -> None:
    wanted = {"CurrentLeaderEpoch": quorum.state.quorum_epoch, "LastFetchedEpoch": 0}
    topics = [{"TopicId": "AAAAAAAAAAAAAAAAAAAAAQ", "Partitions": [wanted]}]
    fetch = framed(encode_request(1, 18, 1, "c", {"MaxBytes": 1 << 20, "Topics": topics}))
    slow = socket.create_connection(("127.0.0.1", quorum.voters[0].port), timeout=2)
    with pytest.raises(TimeoutError):
        # A client that reads no responses is not read from either, so its further requests stay on its own side.
        for _ in range(2_000):
            slow.sendall(fetch * 100)
    assert client.ask("ApiVersions")["ErrorCode"] == ErrorCode.NONE
    goes_on(quorum)
    slow.close()


def test_connections_are_limited_and_freed_again(quorum: InProcessQuorum) -> None:
    clients: list[ControllerClient] = []

    def is_full() -> bool:
        client = quorum.client()
        try:
            client.ask("ApiVersions")
        except OSError:
            return True
        clients.append(client)
        assert len(clients) <= CONNECTIONS
        return False

    # Connections that ended a moment ago may count yet.
    wait_until(lambda: is_full() and len(clients) == CONNECTIONS, "the limit")
    for client in clients:
        client.close()
    clients.clear()
    wait_until(lambda: not is_full(), "a connection to come free")
    clients.pop().close()
    goes_on(quorum)
