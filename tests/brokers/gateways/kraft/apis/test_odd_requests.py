"""Admin requests as no tool sends them: every part has an answer of its own, as from Kafka's controller."""

import pytest

from brokers.wire.errors import ErrorCode
from tests.brokers.gateways.kraft.apis.topic_requests import create, created, new_topic
from tests.support.controller_client import ControllerClient

pytestmark = pytest.mark.usefixtures("epochs")

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
# Longer than any text that an event may have.
LONG = "n" * 3_000


def test_a_name_too_long_for_an_event_is_unknown_and_spoils_nothing_else(client: ControllerClient) -> None:
    created(client, "beside")
    grown = [{"Name": name, "Count": 2, "Assignments": None} for name in ("beside", LONG)]
    results = client.forward("CreatePartitions", Topics=grown)["Results"]
    assert {one["Name"]: one["ErrorCode"] for one in results} == {"beside": ErrorCode.NONE, LONG: UNKNOWN}
    moved = [{"Name": name, "Partitions": [{"PartitionIndex": 0, "Replicas": None}]} for name in ("beside", LONG)]
    responses = client.forward("AlterPartitionReassignments", Topics=moved)["Responses"]
    assert [one["Partitions"][0]["ErrorCode"] for one in responses] == [ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, UNKNOWN]
    named = [{"Topic": name, "Partitions": [0]} for name in ("beside", LONG)]
    response = client.forward("ElectLeaders", TopicPartitions=named)
    assert response["ErrorCode"] == ErrorCode.NONE
    results = response["ReplicaElectionResults"]
    assert [one["PartitionResult"][0]["ErrorCode"] for one in results] == [ErrorCode.ELECTION_NOT_NEEDED, UNKNOWN]


@pytest.mark.parametrize("number", [-1, 2**31 - 1])
def test_a_topic_with_an_impossible_partition_has_an_invalid_assignment(client: ControllerClient, number: int) -> None:
    assignments = [{"PartitionIndex": one, "BrokerIds": [1]} for one in (0, number)]
    [refused] = create(client, new_topic("impossible", -1, -1) | {"Assignments": assignments})
    assert (refused["ErrorCode"], refused["ErrorMessage"]) == (
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        f"impossible cannot have partitions [{number}]",
    )


def test_elections_are_answered_as_they_were_named(client: ControllerClient) -> None:
    created(client, "led", 2)
    named = [
        {"Topic": "led", "Partitions": [1, 0, 1]},
        {"Topic": "led", "Partitions": [7]},
        {"Topic": "led", "Partitions": []},
    ]
    results = client.forward("ElectLeaders", TopicPartitions=named)["ReplicaElectionResults"]
    not_needed = ErrorCode.ELECTION_NOT_NEEDED
    assert [[(one["PartitionId"], one["ErrorCode"]) for one in topic["PartitionResult"]] for topic in results] == [
        [(1, not_needed), (0, not_needed), (1, not_needed)],
        [(7, UNKNOWN)],
        [],
    ]


def test_moves_are_answered_as_they_were_named(client: ControllerClient) -> None:
    created(client, "moved")
    nothing = [{"PartitionIndex": 0, "Replicas": None}]
    moved = [{"Name": "moved", "Partitions": some} for some in (nothing, [], nothing)]
    responses = client.forward("AlterPartitionReassignments", Topics=moved)["Responses"]
    assert [(one["Name"], len(one["Partitions"])) for one in responses] == [("moved", 1), ("moved", 0), ("moved", 1)]


@pytest.mark.parametrize("sender", [{"BrokerId": -1, "BrokerEpoch": 1}, {"BrokerId": 1, "BrokerEpoch": -2}])
def test_a_broker_of_an_impossible_id_or_epoch_is_told_that_its_epoch_is_stale(
    client: ControllerClient, sender: dict[str, int]
) -> None:
    topic_id = created(client, f"of{sender['BrokerId']}")["TopicId"]
    row = {"PartitionIndex": 0, "LeaderEpoch": 0, "PartitionEpoch": 0, "NewIsrWithEpochs": []}
    isrs = [{"TopicId": topic_id, "Partitions": [row]}]
    places = [{"Id": topic_id, "Topics": [{"TopicId": topic_id, "Partitions": [{"PartitionIndex": 0}]}]}]
    answers = [
        client.ask("AlterPartition", Topics=isrs, **sender),
        client.ask("AssignReplicasToDirs", Directories=places, **sender),
        client.ask("AllocateProducerIds", **sender),
    ]
    assert [one["ErrorCode"] for one in answers] == [ErrorCode.STALE_BROKER_EPOCH] * 3


@pytest.mark.parametrize(
    ("version", "error"),
    [(0, ErrorCode.INVALID_REQUEST), (1, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (2, ErrorCode.MISMATCHED_ENDPOINT_TYPE)],
)
def test_a_client_that_asks_for_brokers_is_refused(client: ControllerClient, version: int, error: ErrorCode) -> None:
    assert client.ask("DescribeCluster", version)["ErrorCode"] == error
