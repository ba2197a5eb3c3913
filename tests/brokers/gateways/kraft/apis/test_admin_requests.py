"""Admin requests that brokers forward in an Envelope: topics, reassignments, elections."""

from typing import Any

import pytest

from brokers.wire.errors import ErrorCode
from tests.brokers.gateways.kraft.apis.topic_requests import create, created, new_topic, topics
from tests.support.controller_client import ControllerClient
from tests.support.gateway_in_process import InProcessQuorum

pytestmark = pytest.mark.usefixtures("epochs")


def test_a_topic_is_created_and_its_answer_says_how(quorum: InProcessQuorum, client: ControllerClient) -> None:
    [response] = create(client, new_topic("made", 2, 3, retention_ms="1000"))
    assert (response["ErrorCode"], response["NumPartitions"], response["ReplicationFactor"]) == (ErrorCode.NONE, 2, 3)
    held = topics(quorum)["made"]
    assert (held["topic_id"], held["config"]) == (response["TopicId"], {"retention.ms": "1000"})


@pytest.mark.parametrize("version", range(2, 8))
def test_a_topic_is_created_in_every_version(client: ControllerClient, version: int) -> None:
    [response] = client.ask("CreateTopics", version, Topics=[new_topic(f"made-{version}")])["Topics"]
    assert response["ErrorCode"] == ErrorCode.NONE


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        (new_topic("wide", 1, 9), ErrorCode.INVALID_REPLICATION_FACTOR),
        (new_topic("none", 0, 1), ErrorCode.INVALID_PARTITIONS),
        (new_topic("bad name"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (new_topic(""), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (new_topic("odd", min_insync_replicas="many"), ErrorCode.INVALID_CONFIG),
        (new_topic("null", retention_ms=None), ErrorCode.INVALID_CONFIG),
        (new_topic("soon", retention_ms="soon"), ErrorCode.INVALID_CONFIG),
        (new_topic("strange", no_such_setting="1"), ErrorCode.INVALID_CONFIG),
        (new_topic("__cluster_metadata"), ErrorCode.INVALID_REQUEST),
        (
            new_topic("gap", -1, -1) | {"Assignments": [{"PartitionIndex": 5, "BrokerIds": [1]}]},
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
        (
            new_topic("doubled", -1, -1)
            | {"Assignments": [{"PartitionIndex": 0, "BrokerIds": [one]} for one in (1, 2)]},
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
        (
            new_topic("stranger", -1, -1) | {"Assignments": [{"PartitionIndex": 0, "BrokerIds": [77]}]},
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
    ],
)
def test_an_invalid_topic_is_refused_and_the_others_are_created(
    quorum: InProcessQuorum, client: ControllerClient, topic: dict[str, Any], error: ErrorCode
) -> None:
    beside = f"beside{len(topics(quorum))}"
    refused, other = create(client, topic, new_topic(beside))
    assert (refused["ErrorCode"], other["ErrorCode"]) == (error, ErrorCode.NONE), refused
    assert topic["Name"] not in topics(quorum)


def test_a_name_that_is_taken_or_given_twice_is_refused(quorum: InProcessQuorum, client: ControllerClient) -> None:
    created(client, "taken")
    assert create(client, new_topic("taken"))[0]["ErrorCode"] == ErrorCode.TOPIC_ALREADY_EXISTS
    twice = create(client, new_topic("twice"), new_topic("twice"), new_topic("once"))
    assert {response["Name"]: response["ErrorCode"] for response in twice} == {
        "twice": ErrorCode.INVALID_REQUEST,
        "once": ErrorCode.NONE,
    }
    assert "twice" not in topics(quorum)


def test_a_topic_that_is_only_validated_is_not_created(quorum: InProcessQuorum, client: ControllerClient) -> None:
    [response] = create(client, new_topic("seen", 1, 1), validateOnly=True)
    assert response["ErrorCode"] == ErrorCode.NONE
    assert "seen" not in topics(quorum)


def test_a_request_too_large_for_the_bus_is_refused_and_the_gateway_goes_on(client: ControllerClient) -> None:
    assignment = [{"PartitionIndex": number, "BrokerIds": [2**31 - 1] * 100} for number in range(9_000)]
    [response] = create(client, new_topic("huge", -1, -1) | {"Assignments": assignment})
    assert response["ErrorCode"] == ErrorCode.MESSAGE_TOO_LARGE
    created(client, "after-huge")


def test_topics_are_deleted_by_name_and_by_id(quorum: InProcessQuorum, client: ControllerClient) -> None:
    topic_id = created(client, "by-id")["TopicId"]
    created(client, "by-name")
    nothing = "AAAAAAAAAAAAAAAAAAAAAA"
    response = client.forward(
        "DeleteTopics",
        Topics=[
            {"Name": None, "TopicId": topic_id},
            {"Name": "by-name", "TopicId": nothing},
            {"Name": "nowhere", "TopicId": nothing},
            {"Name": None, "TopicId": "AAAAAAAAAAAAAAAAAAAAew"},
        ],
    )["Responses"]
    assert [one["ErrorCode"] for one in response] == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    ]
    assert response[0]["Name"] == "by-id"


def test_the_name_of_a_deleted_topic_is_free_at_once(client: ControllerClient) -> None:
    topic_id = created(client, "going")["TopicId"]

    def delete(**given: Any) -> int:
        [response] = client.forward("DeleteTopics", Topics=[{"Name": None, "TopicId": topic_id} | given])["Responses"]
        return int(response["ErrorCode"])

    assert delete() == ErrorCode.NONE
    nothing = "AAAAAAAAAAAAAAAAAAAAAA"
    assert delete() == ErrorCode.UNKNOWN_TOPIC_ID
    assert delete(Name="going", TopicId=nothing) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert created(client, "going")["TopicId"] != topic_id
    assert delete() == ErrorCode.UNKNOWN_TOPIC_ID
    for name in ("", "n" * 250):
        assert delete(Name=name, TopicId=nothing) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_topic_that_is_named_twice_is_answered_once_and_stays(
    quorum: InProcessQuorum, client: ControllerClient
) -> None:
    nothing = "AAAAAAAAAAAAAAAAAAAAAA"
    named, by_id = created(client, "kept"), created(client, "kept-too")
    response = client.forward(
        "DeleteTopics",
        Topics=[
            {"Name": "kept", "TopicId": nothing},
            {"Name": "kept", "TopicId": nothing},
            {"Name": "kept-too", "TopicId": nothing},
            {"Name": None, "TopicId": by_id["TopicId"]},
            {"Name": "kept", "TopicId": named["TopicId"]},
            {"Name": None, "TopicId": nothing},
        ],
    )["Responses"]
    assert [(one["Name"], one["ErrorCode"]) for one in response] == [
        ("kept", ErrorCode.INVALID_REQUEST),
        ("kept-too", ErrorCode.INVALID_REQUEST),
        (None, ErrorCode.INVALID_REQUEST),
    ]
    assert {"kept", "kept-too"} <= set(topics(quorum))


@pytest.mark.parametrize("version", [1, 3, 5])
def test_old_clients_can_delete_topics(client: ControllerClient, version: int) -> None:
    created(client, f"old-{version}")
    response = client.forward("DeleteTopics", version, TopicNames=[f"old-{version}", "nowhere"])["Responses"]
    assert [one["ErrorCode"] for one in response] == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_partitions_are_added(quorum: InProcessQuorum, client: ControllerClient) -> None:
    created(client, "grown")
    wanted = [{"Name": "grown", "Count": 3, "Assignments": None}, {"Name": "nowhere", "Count": 3, "Assignments": None}]
    response = client.forward("CreatePartitions", Topics=wanted)["Results"]
    assert [one["ErrorCode"] for one in response] == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert quorum.partition("grown", 2)["leader"] in (1, 2, 3)
    twice = [{"Name": "grown", "Count": count, "Assignments": None} for count in (4, 5)]
    [refused] = client.forward("CreatePartitions", Topics=twice)["Results"]
    assert refused["ErrorCode"] == ErrorCode.INVALID_REQUEST
    placed = [{"Name": "grown", "Count": 4, "Assignments": [{"BrokerIds": [3, 1, 2]}]}]
    assert client.forward("CreatePartitions", Topics=placed)["Results"][0]["ErrorCode"] == ErrorCode.NONE
    assert quorum.partition("grown", 3)["replicas"] == (3, 1, 2)
    fewer = [{"Name": "grown", "Count": 1, "Assignments": None}]
    assert client.forward("CreatePartitions", Topics=fewer)["Results"][0]["ErrorCode"] == ErrorCode.INVALID_PARTITIONS


def test_a_partition_that_nobody_could_lead_is_refused(quorum: InProcessQuorum, client: ControllerClient) -> None:
    assert client.ask("BrokerRegistration", **quorum.registration(40))["ErrorCode"] == ErrorCode.NONE
    assignments = [{"PartitionIndex": number, "BrokerIds": [one]} for number, one in enumerate((1, 40, 2))]
    [response] = create(client, new_topic("holed", -1, -1) | {"Assignments": assignments})
    assert response["ErrorCode"] == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert "holed" not in topics(quorum)
    created(client, "whole", replicas=1)
    grown = [{"Name": "whole", "Count": 2, "Assignments": [{"BrokerIds": [40]}]}]
    response = client.forward("CreatePartitions", Topics=grown)["Results"][0]
    assert response["ErrorCode"] == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert client.forward("UnregisterBroker", BrokerId=40)["ErrorCode"] == ErrorCode.NONE


def test_a_reassignment_is_started_listed_and_cancelled(quorum: InProcessQuorum, client: ControllerClient) -> None:
    assignment = [{"PartitionIndex": 0, "BrokerIds": [1, 2]}]
    create(client, new_topic("moved", -1, -1) | {"Assignments": assignment})

    def move(replicas: list[int] | None, number: int = 0, **given: Any) -> dict[str, Any]:
        topic = {"Name": "moved", "Partitions": [{"PartitionIndex": number, "Replicas": replicas}]}
        response = client.forward("AlterPartitionReassignments", Topics=[topic], **given)
        assert response["ErrorCode"] == ErrorCode.NONE
        return dict(response["Responses"][0]["Partitions"][0])

    def listed(**given: Any) -> list[Any]:
        response: list[Any] = client.forward("ListPartitionReassignments", **given)["Topics"]
        return response

    assert move([1, 2, 3], AllowReplicationFactorChange=False)["ErrorCode"] == ErrorCode.INVALID_REPLICATION_FACTOR
    assert quorum.partition("moved")["replicas"] == (1, 2)
    assert move([3, 2])["ErrorCode"] == ErrorCode.NONE
    [topic] = listed(Topics=None)
    assert topic["Name"] == "moved"
    [partition] = topic["Partitions"]
    assert (partition["AddingReplicas"], partition["RemovingReplicas"]) == ([3], [1])
    assert listed(Topics=[{"Name": "moved", "PartitionIndexes": [0, 4]}]) == [topic]
    assert listed(Topics=[{"Name": "nowhere", "PartitionIndexes": [0]}]) == []
    # The replica that is on its way out does not count.
    assert move([3, 2], AllowReplicationFactorChange=False)["ErrorCode"] == ErrorCode.NONE
    assert move([3, 2, 1], AllowReplicationFactorChange=False)["ErrorCode"] == ErrorCode.INVALID_REPLICATION_FACTOR
    assert move(None)["ErrorCode"] == ErrorCode.NONE
    assert listed(Topics=None) == []
    assert move(None)["ErrorCode"] == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    assert move([1, 77])["ErrorCode"] == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    refused = move([1, -5])
    assert (refused["ErrorCode"], refused["ErrorMessage"]) == (
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "there are no brokers [-5]",
    )
    assert move([1], number=5)["ErrorCode"] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("version", range(3))
def test_an_election_answers_for_each_partition(client: ControllerClient, version: int) -> None:
    created(client, f"led-{version}", 2)
    named = [{"Topic": f"led-{version}", "Partitions": [0, 1]}, {"Topic": "nowhere", "Partitions": [0]}]
    response = client.forward("ElectLeaders", version, TopicPartitions=named)
    results = {
        topic["Topic"]: [one["ErrorCode"] for one in topic["PartitionResult"]]
        for topic in response["ReplicaElectionResults"]
    }
    assert results == {
        f"led-{version}": [ErrorCode.ELECTION_NOT_NEEDED] * 2,
        "nowhere": [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
    }


def test_an_election_of_all_partitions_answers_only_for_those_held(client: ControllerClient) -> None:
    client.forward("ElectLeaders", ElectionType=0, TopicPartitions=None)
    response = client.forward("ElectLeaders", ElectionType=0, TopicPartitions=None)
    assert (response["ErrorCode"], response["ReplicaElectionResults"]) == (ErrorCode.NONE, [])
    assert (
        client.forward("ElectLeaders", ElectionType=9, TopicPartitions=None)["ErrorCode"] == ErrorCode.INVALID_REQUEST
    )
