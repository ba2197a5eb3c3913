"""With super.users set, only super users change anything, even through a broker; anyone may read."""

from collections.abc import Iterator
from typing import Any

import pytest

from brokers.gateways.kraft.messages import layouts
from brokers.gateways.kraft.security.authorization import ANONYMOUS, INTERNAL_TOPICS, READING, Caller, caller_of
from brokers.gateways.kraft.security.token_requests import REQUESTS as TOKENS
from brokers.gateways.kraft.serving import APIS
from brokers.wire.errors import ErrorCode, RefusedError
from brokers.wire.schema import Values
from tests.brokers.gateways.kraft.apis.topic_requests import new_topic, topics
from tests.support.controller_client import ControllerClient, principal_bytes
from tests.support.gateway_in_process import InProcessQuorum

ADMIN, MALLORY = "User:admin", "User:mallory"
NOTHING = "AAAAAAAAAAAAAAAAAAAAAA"
PARTITION = {"Name": "held", "Partitions": [{"PartitionIndex": 0, "Replicas": [1]}]}
ACL = {
    "ResourceType": 2,
    "ResourceName": "held",
    "Principal": "User:mallory",
    "Host": "*",
    "Operation": 2,
    "PermissionType": 3,
}
QUOTA = {
    "Entity": [{"EntityType": "user", "EntityName": "mallory"}],
    "Ops": [{"Key": "producer_byte_rate", "Value": 1.0, "Remove": False}],
}
TOPIC_ERROR, CLUSTER_ERROR = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def resources(entry: dict[str, Any]) -> dict[str, Any]:
    named = [(2, "held"), (4, ""), (32, "group"), (16, "metrics")]
    return {"Resources": [{"ResourceType": kind, "ResourceName": name, "Configs": [entry]} for kind, name in named]}


# For each API that changes something: a request, and the errors of its refusal wherever they are in the response.
OF_EACH_RESOURCE = [TOPIC_ERROR, CLUSTER_ERROR, ErrorCode.GROUP_AUTHORIZATION_FAILED, CLUSTER_ERROR]
CHANGES: dict[str, tuple[dict[str, Any], list[ErrorCode]]] = {
    "CreateTopics": ({"Topics": [new_topic("new"), new_topic("other")]}, [TOPIC_ERROR] * 2),
    "DeleteTopics": ({"Topics": [{"Name": "held", "TopicId": NOTHING}]}, [TOPIC_ERROR]),
    "CreatePartitions": ({"Topics": [{"Name": "held", "Count": 2, "Assignments": None}]}, [TOPIC_ERROR]),
    "AlterConfigs": (resources({"Name": "retention.ms", "Value": "1"}), OF_EACH_RESOURCE),
    "IncrementalAlterConfigs": (
        resources({"Name": "retention.ms", "ConfigOperation": 0, "Value": "1"}),
        OF_EACH_RESOURCE,
    ),
    "ElectLeaders": ({"ElectionType": 1, "TopicPartitions": None}, [CLUSTER_ERROR]),
    # The error of the whole request, and that of its partition.
    "AlterPartitionReassignments": ({"Topics": [PARTITION]}, [CLUSTER_ERROR] * 2),
    "UnregisterBroker": ({"BrokerId": 1}, [CLUSTER_ERROR]),
    "UnregisterController": ({"ControllerId": 1}, [CLUSTER_ERROR]),
    "AlterUserScramCredentials": ({"Deletions": [{"Name": "mallory", "Mechanism": 1}]}, [CLUSTER_ERROR]),
    "UpdateFeatures": ({"FeatureUpdates": [{"Feature": "share.version", "MaxVersionLevel": 1}]}, [CLUSTER_ERROR]),
    "AlterClientQuotas": ({"Entries": [QUOTA]}, [CLUSTER_ERROR]),
    "CreateAcls": ({"Creations": [ACL]}, [CLUSTER_ERROR]),
    "DeleteAcls": ({"Filters": [{}]}, [CLUSTER_ERROR]),
}


@pytest.fixture(scope="module")
def quorum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessQuorum]:
    quorum = InProcessQuorum(tmp_path_factory.mktemp("quorum"), super_users=f"{ADMIN}; User:CN=ops,O=x")
    client = quorum.client()
    quorum.join(client, 1, 2, 3)
    [response] = client.forward("CreateTopics", principal=ADMIN, Topics=[new_topic("held", 1, 3)])["Topics"]
    assert response["ErrorCode"] == ErrorCode.NONE
    client.close()
    yield quorum
    quorum.stop()


def errors_in(values: Any) -> list[int]:
    match values:
        case dict():
            own = [int(values["ErrorCode"])] if values.get("ErrorCode") else []
            return own + [code for one in values.values() for code in errors_in(one)]
        case list():
            return [code for one in values for code in errors_in(one)]
    return []


def asked_of_the_engine(quorum: InProcessQuorum) -> list[bytes]:
    """List the events on the bus that come from admin requests."""
    waiting = [b"create_", b"delete_", b"alter_", b"elect_", b"unregister"]
    events = quorum.bus.read(0, quorum.bus.last_seq())
    return [entry.raw for entry in events if any(b'"kind":"' + kind in entry.raw for kind in waiting)]


def test_every_client_api_is_authorized_or_only_reads() -> None:
    names = {layout.api_key: name.removesuffix("Request") for name, layout in layouts().items() if "Request" in name}
    assert {names[key] for key, api in APIS.items() if api.is_forwarded} == CHANGES.keys() | READING | TOKENS


@pytest.mark.parametrize("principal", [MALLORY, ANONYMOUS, "Group:admin", "User:CN=ops"])
@pytest.mark.parametrize("name", CHANGES)
def test_a_user_who_is_no_super_user_changes_nothing(
    quorum: InProcessQuorum, client: ControllerClient, name: str, principal: str
) -> None:
    before = asked_of_the_engine(quorum)
    values, errors = CHANGES[name]
    assert errors_in(client.forward(name, principal=principal, **values)) == errors
    assert asked_of_the_engine(quorum) == before


@pytest.mark.parametrize("name", CHANGES)
def test_a_direct_client_of_the_gateway_is_anonymous(
    quorum: InProcessQuorum, client: ControllerClient, name: str
) -> None:
    before = asked_of_the_engine(quorum)
    values, errors = CHANGES[name]
    assert errors_in(client.ask(name, **values)) == errors
    assert asked_of_the_engine(quorum) == before


def test_super_users_may_do_anything(quorum: InProcessQuorum, client: ControllerClient) -> None:
    for number, principal in enumerate((ADMIN, "User:CN=ops,O=x")):
        made = [new_topic(f"made-{number}")]
        assert errors_in(client.forward("CreateTopics", principal=principal, Topics=made)) == []
        gone = [{"Name": f"made-{number}", "TopicId": NOTHING}]
        assert errors_in(client.forward("DeleteTopics", principal=principal, Topics=gone)) == []


def test_anyone_may_read(client: ControllerClient) -> None:
    assert errors_in(client.forward("ListPartitionReassignments", principal=MALLORY, Topics=None)) == []
    assert errors_in(client.forward("DescribeQuorum", principal=MALLORY, Topics=[])) == []


def test_brokers_may_create_their_internal_topics(quorum: InProcessQuorum, client: ControllerClient) -> None:
    for name in sorted(INTERNAL_TOPICS):
        assert errors_in(client.ask("CreateTopics", Topics=[new_topic(name, 1, 3)])) == []
    assert topics(quorum).keys() >= INTERNAL_TOPICS
    both = client.ask("CreateTopics", Topics=[new_topic("__consumer_offsets"), new_topic("new")])
    assert errors_in(both) == [TOPIC_ERROR] * 2
    passed_on = client.forward("CreateTopics", principal=MALLORY, Topics=[new_topic("__consumer_offsets")])
    assert errors_in(passed_on) == [TOPIC_ERROR], "in a client's name it is the client that asks"


@pytest.mark.parametrize(
    ("principal", "address", "error"),
    [
        (None, bytes(4), ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        (b"", bytes(4), ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        (b"\0\1" + principal_bytes(ADMIN)[2:], bytes(4), ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        (principal_bytes(ADMIN)[:-1], bytes(4), ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        (principal_bytes(ADMIN) + b"\0", bytes(4), ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        (principal_bytes(ADMIN), b"", ErrorCode.INVALID_REQUEST),
        (principal_bytes(ADMIN), bytes(5), ErrorCode.INVALID_REQUEST),
    ],
)
def test_an_envelope_without_a_principal_is_refused(
    client: ControllerClient, principal: bytes | None, address: bytes, error: ErrorCode
) -> None:
    response = envelope(client, principal, address)
    assert (response["ErrorCode"], response["ResponseData"]) == (error, None)
    assert envelope(client, principal_bytes(ADMIN), bytes(16))["ErrorCode"] == ErrorCode.NONE


def envelope(client: ControllerClient, principal: bytes | None, address: bytes) -> Values:
    # The header of a DescribeQuorum of nothing, in version 0.
    data = bytes.fromhex("00370000000000010000 00 01 00".replace(" ", ""))
    return client.ask("Envelope", RequestData=data, RequestPrincipal=principal, ClientHostAddress=address)


def test_a_principal_is_read_as_kafka_writes_it() -> None:
    def caller(principal: bytes) -> Caller:
        return caller_of({"RequestPrincipal": principal, "ClientHostAddress": bytes(4)}, must_be_known=True)

    written = bytes.fromhex("0000 05") + b"User" + bytes.fromhex("06") + b"alice"
    assert caller(written + b"\0\0") == Caller("User:alice", "0.0.0.0")
    assert caller(written + b"\1\0") == Caller("User:alice", "0.0.0.0", is_token=True)
    with pytest.raises(RefusedError, match="PRINCIPAL_DESERIALIZATION_FAILURE"):
        caller(bytes.fromhex("0000"))


def test_events_and_decisions_name_who_asked(quorum: InProcessQuorum, client: ControllerClient) -> None:
    before = quorum.bus.last_seq()
    assert errors_in(client.forward("CreateTopics", principal=ADMIN, Topics=[new_topic("named", 1, 3)])) == []
    told = [one.body for one in quorum.bus.decisions((before, 2**31), 1_000) if b'"topic":"named"' in one.body]
    asked = [entry.raw for entry in quorum.bus.read(before, quorum.bus.last_seq()) if b'"named"' in entry.raw]
    assert len(asked) == 1
    assert len(told) >= 3
    assert all(b'"principal":"User:admin"' in text for text in [*asked, *told])


def test_everybody_may_ask_for_a_token_of_their_own(client: ControllerClient) -> None:
    asked = {"Renewers": [], "MaxLifetimeMs": -1, "OwnerPrincipalType": "User"}
    mine = client.forward("CreateDelegationToken", principal=MALLORY, OwnerPrincipalName="mallory", **asked)
    another = client.forward("CreateDelegationToken", principal=MALLORY, OwnerPrincipalName="admin", **asked)
    # This gateway has no key of tokens.
    assert [one["ErrorCode"] for one in (mine, another)] == [ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, CLUSTER_ERROR]
