"""A gateway with an authorizer: ACLs by request, and what they allow clients and brokers."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from brokers.gateways.kraft.metadata import acl_numbers as numbers
from brokers.gateways.kraft.security.audit_log import FILE_NAME
from brokers.wire.errors import ErrorCode
from brokers.wire.schema import Values
from conf.super_users import AuthorizerClass
from tests.brokers.gateways.kraft.apis.topic_requests import new_topic, topics
from tests.brokers.gateways.kraft.security.test_authorization import errors_in
from tests.support.controller_client import ControllerClient
from tests.support.gateway_in_process import InProcessQuorum
from tests.support.waiting import wait_until

ADMIN, ALICE, BOB, MALLORY = "User:admin", "User:alice", "User:bob", "User:mallory"
STANDARD = AuthorizerClass.__args__[1]  # type: ignore[attr-defined]
TOPIC_ERROR, CLUSTER_ERROR = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED
ANY: Values = {
    "ResourceTypeFilter": numbers.ANY,
    "ResourceNameFilter": None,
    "PatternTypeFilter": numbers.ANY,
    "PrincipalFilter": None,
    "HostFilter": None,
    "Operation": numbers.ANY,
    "PermissionType": numbers.ANY,
}


@pytest.fixture(scope="module")
def quorum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessQuorum]:
    settings = {"authorizer_class_name": STANDARD, "authorizer_log_level": "debug"}
    quorum = InProcessQuorum(tmp_path_factory.mktemp("quorum"), super_users=ADMIN, **settings)
    client = quorum.client()
    quorum.join(client, 1, 2, 3)
    client.close()
    yield quorum
    quorum.stop()


@pytest.fixture
def client(quorum: InProcessQuorum) -> Iterator[ControllerClient]:
    """A client of a quorum whose ACLs the test alone made."""
    client = quorum.client()
    forwarded(client, "DeleteAcls", ADMIN, Filters=[ANY])
    yield client
    client.close()


def forwarded(client: ControllerClient, name: str, principal: str, **values: Any) -> Values:
    return client.forward(name, principal=principal, **values)


def creation(principal: str, operation: str, resource_type: str = "TOPIC", name: str = "mine", **fields: Any) -> Values:
    return {
        "ResourceType": numbers.RESOURCE_TYPES[resource_type],
        "ResourceName": name,
        "ResourcePatternType": numbers.PATTERN_TYPES[fields.get("pattern", "LITERAL")],
        "Principal": principal,
        "Host": fields.get("host", "*"),
        "Operation": numbers.OPERATIONS[operation],
        "PermissionType": numbers.PERMISSION_TYPES[fields.get("permission", "ALLOW")],
    }


def grant(client: ControllerClient, *creations: Values, by: str = ADMIN) -> list[int]:
    results = forwarded(client, "CreateAcls", by, Creations=list(creations))["Results"]
    return [one["ErrorCode"] for one in results]


def create_topics(client: ControllerClient, principal: str, *names: str) -> dict[str, int]:
    made = [new_topic(name, 1, 1) for name in names]
    response = forwarded(client, "CreateTopics", principal, Topics=made)
    return {one["Name"]: one["ErrorCode"] for one in response["Topics"]}


def audited(quorum: InProcessQuorum) -> list[dict[str, Any]]:
    lines = (quorum.directory / "gateway-100" / FILE_NAME).read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_acls_are_created_described_and_deleted(quorum: InProcessQuorum, client: ControllerClient) -> None:
    assert client.ask("DescribeAcls", **ANY)["ErrorCode"] == CLUSTER_ERROR, "nobody knows the caller"
    creations = [creation(ALICE, "CREATE"), creation(BOB, "READ", "GROUP", "g"), creation(ALICE, "READ")]
    creations.append(creation("User:ANONYMOUS", "DESCRIBE", "CLUSTER", "kafka-cluster"))
    assert grant(client, *creations) == [ErrorCode.NONE] * 4
    described = client.ask("DescribeAcls", **ANY)
    listed = {
        (one["ResourceType"], one["ResourceName"], one["PatternType"]): len(one["Acls"])
        for one in described["Resources"]
    }
    assert listed == {(2, "mine", 3): 2, (3, "g", 3): 1, (4, "kafka-cluster", 3): 1}
    of_alice = client.ask("DescribeAcls", **ANY | {"PrincipalFilter": ALICE})
    assert [one["ResourceName"] for one in of_alice["Resources"]] == ["mine"]
    exact = {
        "ResourceTypeFilter": 2,
        "ResourceNameFilter": "mine",
        "PatternTypeFilter": 3,
        "PrincipalFilter": ALICE,
        "HostFilter": "*",
        "Operation": numbers.OPERATIONS["CREATE"],
        "PermissionType": 3,
    }
    filters = [exact, ANY | {"PrincipalFilter": ALICE}, ANY | {"PrincipalFilter": MALLORY}]
    results = forwarded(client, "DeleteAcls", ADMIN, Filters=filters)["FilterResults"]
    assert [len(one["MatchingAcls"]) for one in results] == [1, 2, 0]
    told = [one.body for one in quorum.bus.decisions((0, 0), 10_000, passing_over=True) if b'"kind":"acls"' in one.body]
    assert told
    assert all(b'"principal":"User:admin"' in text for text in told)


@pytest.mark.parametrize(
    "wrong",
    [
        {"ResourceType": numbers.ANY},
        {"ResourceType": 99},
        {"ResourcePatternType": numbers.MATCH},
        {"Operation": numbers.ANY},
        {"PermissionType": 0},
        {"ResourceName": ""},
        {"Principal": "alice"},
        {"ResourceType": 4, "ResourceName": "other"},
    ],
)
def test_an_invalid_acl_does_not_stop_the_others(client: ControllerClient, wrong: dict[str, Any]) -> None:
    good = creation(ALICE, "CREATE")
    assert grant(client, good | wrong, good) == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE]
    assert grant(client, good | wrong) == [ErrorCode.INVALID_REQUEST]


@pytest.mark.parametrize("wrong", [{"ResourceTypeFilter": 0}, {"PatternTypeFilter": 9}, {"Operation": 99}])
def test_an_invalid_filter_does_not_stop_the_others(client: ControllerClient, wrong: dict[str, Any]) -> None:
    grant(client, creation(ALICE, "CREATE"), creation("User:ANONYMOUS", "DESCRIBE", "CLUSTER", "kafka-cluster"))
    assert client.ask("DescribeAcls", **ANY | wrong)["ErrorCode"] == ErrorCode.INVALID_REQUEST
    results = forwarded(client, "DeleteAcls", ADMIN, Filters=[ANY | wrong, ANY])["FilterResults"]
    assert [(one["ErrorCode"], len(one["MatchingAcls"])) for one in results] == [(ErrorCode.INVALID_REQUEST, 0), (0, 2)]
    [result] = forwarded(client, "DeleteAcls", ADMIN, Filters=[ANY | wrong])["FilterResults"]
    assert result["ErrorCode"] == ErrorCode.INVALID_REQUEST


def test_only_a_principal_that_may_alter_the_cluster_changes_acls(client: ControllerClient) -> None:
    mine = creation(MALLORY, "ALL", "CLUSTER", "kafka-cluster")
    assert grant(client, mine, by=MALLORY) == [CLUSTER_ERROR]
    [result] = forwarded(client, "DeleteAcls", MALLORY, Filters=[ANY])["FilterResults"]
    assert result["ErrorCode"] == CLUSTER_ERROR
    assert grant(client, creation(BOB, "ALTER", "CLUSTER", "kafka-cluster")) == [ErrorCode.NONE]
    assert grant(client, mine, by=BOB) == [ErrorCode.NONE]


def test_an_acl_decides_who_creates_which_topic(quorum: InProcessQuorum, client: ControllerClient) -> None:
    grant(client, creation(ALICE, "CREATE", name="a-", pattern="PREFIXED"), creation(BOB, "CREATE", name="a-bob"))
    assert create_topics(client, ALICE, "a-1", "b-1") == {"a-1": ErrorCode.NONE, "b-1": TOPIC_ERROR}
    assert create_topics(client, BOB, "a-1", "a-bob") == {"a-1": TOPIC_ERROR, "a-bob": ErrorCode.NONE}
    grant(client, creation(ALICE, "CREATE", name="a-x", permission="DENY"))
    assert create_topics(client, ALICE, "a-x") == {"a-x": TOPIC_ERROR}
    assert create_topics(client, ADMIN, "a-x") == {"a-x": ErrorCode.NONE}
    assert {"a-1", "a-bob", "a-x"} <= topics(quorum).keys()
    assert "b-1" not in topics(quorum)


def test_hosts_count(client: ControllerClient) -> None:
    grant(
        client,
        creation(ALICE, "CREATE", name="h", host="127.0.0.1"),
        creation(BOB, "CREATE", name="h", host="10.9.9.9"),
    )
    assert create_topics(client, BOB, "h") == {"h": TOPIC_ERROR}
    assert create_topics(client, ALICE, "h") == {"h": ErrorCode.NONE}


def test_the_rest_of_a_request_is_carried_out(client: ControllerClient) -> None:
    assert create_topics(client, ADMIN, "r-1", "r-2", "r-3") == dict.fromkeys(("r-1", "r-2", "r-3"), ErrorCode.NONE)
    grant(
        client,
        creation(ALICE, "ALTER_CONFIGS", name="r-1"),
        creation(ALICE, "ALTER", name="r-2"),
        creation(ALICE, "DELETE", name="r-3"),
    )
    entry = {"Name": "retention.ms", "ConfigOperation": 0, "Value": "1"}
    resources = [{"ResourceType": 2, "ResourceName": name, "Configs": [entry]} for name in ("r-1", "r-2")]
    changed = forwarded(client, "IncrementalAlterConfigs", ALICE, Resources=resources)["Responses"]
    assert {one["ResourceName"]: one["ErrorCode"] for one in changed} == {"r-1": 0, "r-2": TOPIC_ERROR}
    grown = [{"Name": name, "Count": 2, "Assignments": None} for name in ("r-1", "r-2")]
    results = forwarded(client, "CreatePartitions", ALICE, Topics=grown)["Results"]
    assert {one["Name"]: one["ErrorCode"] for one in results} == {"r-1": TOPIC_ERROR, "r-2": 0}
    gone = [{"Name": name, "TopicId": "AAAAAAAAAAAAAAAAAAAAAA"} for name in ("r-2", "r-3", "r-none")]
    deleted = forwarded(client, "DeleteTopics", ALICE, Topics=gone)["Responses"]
    expected = {"r-2": TOPIC_ERROR, "r-3": 0, "r-none": TOPIC_ERROR}
    assert {one["Name"]: one["ErrorCode"] for one in deleted} == expected


def test_reading_needs_an_acl_too(client: ControllerClient) -> None:
    for name, values in (("ListPartitionReassignments", {"Topics": None}), ("DescribeQuorum", {"Topics": []})):
        assert errors_in(forwarded(client, name, MALLORY, **values)) == [CLUSTER_ERROR]
    assert client.ask("DescribeCluster", EndpointType=2)["ErrorCode"] == CLUSTER_ERROR
    grant(client, creation("User:*", "ALTER", "CLUSTER", "kafka-cluster"))
    assert errors_in(forwarded(client, "DescribeQuorum", MALLORY, Topics=[])) == [], "ALTER implies DESCRIBE"
    assert client.ask("DescribeCluster", EndpointType=2)["ErrorCode"] == ErrorCode.NONE


def test_a_client_sees_what_it_may_do_on_the_cluster(client: ControllerClient) -> None:
    cluster = {"resource_type": "CLUSTER", "name": "kafka-cluster"}
    asked = {"IncludeClusterAuthorizedOperations": True, "EndpointType": 2}
    assert grant(client, creation("User:ANONYMOUS", "ALTER", **cluster)) == [ErrorCode.NONE]
    answer = client.ask("DescribeCluster", **asked)
    assert answer["ClusterAuthorizedOperations"] == sum(1 << numbers.OPERATIONS[one] for one in ("ALTER", "DESCRIBE"))


def test_brokers_need_no_acl_and_a_denial_shuts_them_out(client: ControllerClient) -> None:
    beat = {"BrokerId": 9, "BrokerEpoch": 1, "WantFence": False}
    unknown = ErrorCode.STALE_BROKER_EPOCH
    assert client.ask("BrokerHeartbeat", **beat)["ErrorCode"] == unknown
    everybody = creation("User:*", "CLUSTER_ACTION", "CLUSTER", "kafka-cluster", permission="DENY")
    direct = creation("User:ANONYMOUS", "ALTER", "CLUSTER", "kafka-cluster")
    assert grant(client, everybody, direct) == [ErrorCode.NONE] * 2
    assert client.ask("BrokerHeartbeat", **beat)["ErrorCode"] == CLUSTER_ERROR
    assert client.ask("Envelope", RequestData=b"", RequestPrincipal=b"", ClientHostAddress=bytes(4))["ErrorCode"] == (
        CLUSTER_ERROR
    )
    assert errors_in(client.ask("DeleteAcls", Filters=[ANY])) == []
    assert client.ask("BrokerHeartbeat", **beat)["ErrorCode"] == unknown


def test_the_audit_log_has_every_decision(quorum: InProcessQuorum, client: ControllerClient) -> None:
    grant(client, creation(ALICE, "CREATE", name="logged"))
    create_topics(client, MALLORY, "logged")
    create_topics(client, ALICE, "logged")
    last = (ALICE, "TOPIC:LITERAL:logged")
    wait_until(lambda: last in {(one["principal"], one["resource"]) for one in audited(quorum)}, "the last line")
    told = [one for one in audited(quorum) if one["request"] in ("CreateAcls", "CreateTopics")][-3:]
    shown = [(one["principal"], one["is"], one["operation"], one["resource"], one["rule"]) for one in told]
    assert shown == [
        (ADMIN, "Allowed", "ALTER", "CLUSTER:LITERAL:kafka-cluster", "SuperUser"),
        (MALLORY, "Denied", "CREATE", "TOPIC:LITERAL:logged", "DefaultDeny"),
        (ALICE, "Allowed", "CREATE", "TOPIC:LITERAL:logged", "MatchingAcl"),
    ]
    assert told[-1]["acl"]["principal"] == ALICE
    assert {one["host"] for one in told} == {"127.0.0.1"}


def test_without_an_authorizer_there_are_no_acls(tmp_path_factory: pytest.TempPathFactory) -> None:
    quorum = InProcessQuorum(tmp_path_factory.mktemp("open"))
    client = quorum.client()
    try:
        for response in (
            forwarded(client, "CreateAcls", ALICE, Creations=[creation(ALICE, "READ")]),
            forwarded(client, "DeleteAcls", ALICE, Filters=[ANY]),
            client.ask("DescribeAcls", **ANY),
        ):
            assert errors_in(response) == [ErrorCode.SECURITY_DISABLED]
        assert not (quorum.directory / "gateway-100" / FILE_NAME).exists()
    finally:
        client.close()
        quorum.stop()
