"""A gateway can report a success in each version of a response, even if only some versions have all its fields."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from brokers.gateways.kraft.messages import layouts
from brokers.gateways.kraft.serving import APIS
from brokers.wire.errors import ErrorCode
from brokers.wire.layout import FieldLayout
from brokers.wire.schema import Values
from tests.brokers.gateways.kraft.apis.topic_requests import created, new_topic
from tests.support.controller_client import ControllerClient
from tests.support.gateway_in_process import InProcessQuorum

TOPIC = 2
NAMES = {
    key: name.removesuffix("Request")
    for name, one in layouts().items()
    if (key := one.api_key) in APIS and name.endswith("Request")
}
# The listener answers this one only before it knows who asks (tests/brokers/gateways/kraft/security/test_sasl.py).
NOT_HERE = {"SaslAuthenticate"}


@pytest.fixture(scope="module")
def quorum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessQuorum]:
    folder = tmp_path_factory.mktemp("quorum")
    (folder / "token.key").write_text("a key that nobody else has\n")
    quorum = InProcessQuorum(folder, delegation_token_secret_key_file=str(folder / "token.key"))
    yield quorum
    quorum.stop()


@pytest.fixture(scope="module")
def held(quorum: InProcessQuorum, epochs: dict[int, int]) -> None:
    """A topic of three replicas."""
    client = quorum.client()
    created(client, "held")
    client.close()


def fetched(version: int) -> Values:
    partition = {"Partition": 0, "CurrentLeaderEpoch": 1, "FetchOffset": 0, "LastFetchedEpoch": 0, "HighWatermark": -1}
    named = {"Topic": "__cluster_metadata"} if version < 13 else {"TopicId": "AAAAAAAAAAAAAAAAAAAAAQ"}
    replica = {"ReplicaId": 1} if version < 15 else {"ReplicaState": {"ReplicaId": 1, "ReplicaEpoch": -1}}
    return {"MaxWaitMs": 0, "MaxBytes": 1 << 20, "Topics": [named | {"Partitions": [partition]}]} | replica


def listed_files(version: int) -> Values:
    partition = {"SnapshotId": {"EndOffset": -1, "Epoch": -1}, "Position": 0}
    return {"Topics": [{"Name": "__gateway_log", "Partitions": [partition]}]}


def deleted(version: int) -> Values:
    name = f"deleted-in-{version}"
    return {"TopicNames": [name]} if version < 6 else {"Topics": [{"Name": name}]}


def moved(version: int) -> Values:
    replicas = [1, 3, 2] if version % 2 else [1, 2, 3]
    return {"Topics": [{"Name": "held", "Partitions": [{"PartitionIndex": 0, "Replicas": replicas}]}]}


def described(version: int) -> Values:
    return {"Resources": [{"ResourceType": TOPIC, "ResourceName": "held"}], "IncludeSynonyms": True}


REQUESTS: dict[str, Callable[[int], Values]] = {
    "AlterPartitionReassignments": moved,
    "ApiVersions": lambda version: {"ClientSoftwareName": "test", "ClientSoftwareVersion": "1"} if version > 2 else {},
    "CreateDelegationToken": lambda version: {"Renewers": [], "MaxLifetimeMs": -1},
    "CreateTopics": lambda version: {"Topics": [new_topic(f"made-in-{version}", retention_ms="7")]},
    "DeleteTopics": deleted,
    "DescribeCluster": lambda version: {"EndpointType": 2} if version else {},
    "DescribeConfigs": described,
    "DescribeQuorum": lambda version: {
        "Topics": [{"TopicName": "__cluster_metadata", "Partitions": [{"PartitionIndex": 0}]}]
    },
    "ElectLeaders": lambda version: {"TopicPartitions": [{"Topic": "held", "Partitions": [0]}]},
    "Fetch": fetched,
    "FetchSnapshot": listed_files,
    "UpdateFeatures": lambda version: {"FeatureUpdates": [{"Feature": "group.version", "MaxVersionLevel": 1}]},
}
# The field of each response that has the answer to the request above. If it is empty, it has no error code either.
ANSWERS = {
    "AlterPartitionReassignments": "Responses",
    "ApiVersions": "ApiKeys",
    "CreateDelegationToken": "TokenId",
    "CreateTopics": "Topics",
    "DeleteTopics": "Responses",
    "DescribeCluster": "Brokers",
    "DescribeConfigs": "Results",
    "DescribeQuorum": "Topics",
    "ElectLeaders": "ReplicaElectionResults",
    "Fetch": "Responses",
    "FetchSnapshot": "Topics",
    "UpdateFeatures": "Results",
}
# The listener describes controllers, and version 0 of the request cannot ask for controllers.
REFUSED = {("DescribeCluster", 0): ErrorCode.INVALID_REQUEST}
# From this version on all features of a request are changed or none, so there is no result for each.
WITHOUT_ITEMS = {*REFUSED, ("UpdateFeatures", 2)}
NOTHING_TO_DO = (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED)


def in_some_versions(fields: Iterable[FieldLayout], low: int, high: int) -> bool:
    """Return whether one of the fields is in some of the versions ``low`` to ``high``, but not in all of them."""
    return any(
        one.versions.low <= high
        and one.versions.high >= low
        and (one.versions.low > low or one.versions.high < high or in_some_versions(one.fields, low, high))
        for one in fields
    )


def test_every_response_with_fields_of_only_some_versions_is_asked_for_here() -> None:
    found = {
        NAMES[key]
        for key, api in APIS.items()
        if in_some_versions(layouts()[f"{NAMES[key]}Response"].fields, api.min_version, api.max_version)
    }
    assert found - NOT_HERE == set(REQUESTS)


def error_codes(response: Any) -> set[int]:
    """Return all error codes in a response, at any depth."""
    if isinstance(response, list):
        return set().union(*map(error_codes, response))
    if not isinstance(response, dict):
        return set()
    nested = set().union(*map(error_codes, response.values()))
    return nested | {code for name, code in response.items() if name == "ErrorCode"}


@pytest.mark.usefixtures("held")
@pytest.mark.parametrize(
    ("name", "version"),
    [
        (NAMES[key], version)
        for key, api in APIS.items()
        if NAMES[key] in REQUESTS
        for version in range(api.min_version, api.max_version + 1)
    ],
)
def test_a_success_is_reported(client: ControllerClient, name: str, version: int) -> None:
    key = next(key for key, known in NAMES.items() if known == name)
    if name == "DeleteTopics":
        created(client, f"deleted-in-{version}")
    values = REQUESTS[name](version)
    if APIS[key].is_forwarded:
        response = client.forward(name, version, principal="User:alice", **values)
    else:
        response = client.ask(name, version, **values)
    codes = error_codes(response)
    assert codes <= {REFUSED.get((name, version), ErrorCode.NONE), *NOTHING_TO_DO}, response
    assert bool(response[ANSWERS[name]]) == ((name, version) not in WITHOUT_ITEMS), response
