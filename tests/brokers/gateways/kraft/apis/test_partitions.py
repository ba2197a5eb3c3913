"""Requests of partition leaders and transaction coordinators: AlterPartition, AllocateProducerIds."""

import json
from typing import Any

import pytest

from brokers.wire.errors import ErrorCode
from tests.support.controller_client import ControllerClient
from tests.support.gateway_in_process import InProcessQuorum, heartbeat

ALL = (1, 2, 3)


@pytest.fixture
def topic(quorum: InProcessQuorum, client: ControllerClient, epochs: dict[int, int]) -> dict[str, Any]:
    """The state of partition 0 of the test's own topic: three replicas in sync, led by broker 1."""
    names = {held["topic"] for held in quorum.view()["topics"]}
    name = next(name for number in range(100) if (name := f"t{number}") not in names)
    assignment = [{"PartitionIndex": 0, "BrokerIds": [1, 2, 3]}]
    requests = {"Name": name, "NumPartitions": -1, "ReplicationFactor": -1, "Assignments": assignment}
    [created] = client.ask("CreateTopics", Topics=[requests], timeoutMs=9_000)["Topics"]
    assert created["ErrorCode"] == ErrorCode.NONE
    return quorum.partition(name) | {"topic_id": created["TopicId"]}


def altered(
    client: ControllerClient, held: dict[str, Any], epochs: dict[int, int], isr: tuple[int, ...], **given: Any
) -> dict[str, Any]:
    """Send AlterPartition as broker 1 in its present epochs, unless ``given`` has others; return the whole response."""
    version = given.pop("version", 3)
    partition = {
        "PartitionIndex": given.pop("number", 0),
        "LeaderEpoch": given.pop("leader_epoch", held["leader_epoch"]),
        "PartitionEpoch": given.pop("partition_epoch", held["partition_epoch"]),
        "LeaderRecoveryState": 0,
    }
    if version >= 3:
        members = given.pop("member_epochs", epochs)
        partition["NewIsrWithEpochs"] = [{"BrokerId": one, "BrokerEpoch": members.get(one, -1)} for one in isr]
    else:
        partition["NewIsr"] = list(isr)
    topics = [{"TopicId": given.pop("topic_id", held["topic_id"]), "Partitions": [partition]}]
    return client.ask(
        "AlterPartition", version, **({"BrokerId": 1, "BrokerEpoch": epochs[1], "Topics": topics} | given)
    )


def partition_of(response: dict[str, Any]) -> dict[str, Any]:
    assert response["ErrorCode"] == ErrorCode.NONE
    [topic] = response["Topics"]
    [partition] = topic["Partitions"]
    return dict(partition)


@pytest.mark.parametrize("version", [2, 3])
def test_an_isr_shrinks_and_grows(
    quorum: InProcessQuorum, client: ControllerClient, topic: dict[str, Any], epochs: dict[int, int], version: int
) -> None:
    answer = partition_of(altered(client, topic, epochs, (1, 2), version=version))
    assert answer["ErrorCode"] == ErrorCode.NONE
    assert (answer["LeaderId"], answer["LeaderEpoch"], answer["Isr"]) == (1, topic["leader_epoch"], [1, 2])
    assert answer["PartitionEpoch"] == topic["partition_epoch"] + 1
    held = quorum.partition(topic["topic"])
    assert (held["isr"], held["partition_epoch"]) == ((1, 2), answer["PartitionEpoch"])
    requests = [entry.raw for entry in quorum.bus.read(0, quorum.bus.last_seq()) if b'"alter_isrs"' in entry.raw]
    assert json.loads(requests[-1])["topics"][0]["topic_id"] == topic["topic_id"]
    answer = partition_of(
        altered(client, topic, epochs, ALL, version=version, partition_epoch=answer["PartitionEpoch"])
    )
    assert (answer["ErrorCode"], sorted(answer["Isr"])) == (ErrorCode.NONE, [1, 2, 3])


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"leader_epoch": 99}, ErrorCode.NOT_CONTROLLER),
        ({"partition_epoch": 99}, ErrorCode.NOT_CONTROLLER),
        ({"topic_id": "AAAAAAAAAAAAAAAAAAAAew"}, ErrorCode.UNKNOWN_TOPIC_ID),
        ({"number": 7}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"member_epochs": {1: -1, 2: 1}}, ErrorCode.INELIGIBLE_REPLICA),
    ],
)
def test_an_invalid_change_is_refused_for_its_partition(
    quorum: InProcessQuorum,
    client: ControllerClient,
    topic: dict[str, Any],
    epochs: dict[int, int],
    given: dict[str, Any],
    error: ErrorCode,
) -> None:
    answer = partition_of(altered(client, topic, epochs, (1, 2), **given))
    assert answer["ErrorCode"] == error
    assert quorum.partition(topic["topic"])["isr"] == topic["isr"]


def test_a_leader_in_an_older_epoch_is_fenced(
    quorum: InProcessQuorum, client: ControllerClient, topic: dict[str, Any], epochs: dict[int, int]
) -> None:
    client.ask("BrokerHeartbeat", **heartbeat(3, epochs[3], WantFence=True))
    try:
        assert quorum.partition(topic["topic"])["leader_epoch"] > topic["leader_epoch"]
        assert partition_of(altered(client, topic, epochs, (1, 2)))["ErrorCode"] == ErrorCode.FENCED_LEADER_EPOCH
    finally:
        client.ask("BrokerHeartbeat", **heartbeat(3, epochs[3]))


def test_a_change_made_in_between_causes_a_conflict(
    client: ControllerClient, topic: dict[str, Any], epochs: dict[int, int]
) -> None:
    assert partition_of(altered(client, topic, epochs, (1, 2)))["ErrorCode"] == ErrorCode.NONE
    assert partition_of(altered(client, topic, epochs, (1, 3)))["ErrorCode"] == ErrorCode.INVALID_UPDATE_VERSION


@pytest.mark.parametrize("isr", [(1, 9), (2, 3), (1, 1)])
def test_an_invalid_isr_is_refused(
    quorum: InProcessQuorum,
    client: ControllerClient,
    topic: dict[str, Any],
    epochs: dict[int, int],
    isr: tuple[int, ...],
) -> None:
    answer = partition_of(altered(client, topic, epochs, isr))
    assert answer["ErrorCode"] in (ErrorCode.INVALID_REQUEST, ErrorCode.INELIGIBLE_REPLICA)
    assert quorum.partition(topic["topic"])["isr"] == topic["isr"]


def test_a_request_in_an_old_broker_epoch_is_refused_as_a_whole(
    client: ControllerClient, topic: dict[str, Any], epochs: dict[int, int]
) -> None:
    response = altered(client, topic, epochs, (1, 2), BrokerEpoch=epochs[1] - 1)
    assert (response["ErrorCode"], response["Topics"]) == (ErrorCode.STALE_BROKER_EPOCH, [])


def test_a_repeated_partition_is_changed_once(
    client: ControllerClient, topic: dict[str, Any], epochs: dict[int, int]
) -> None:
    answer = partition_of(altered(client, topic, epochs, (1, 2)))
    held = topic | {"partition_epoch": answer["PartitionEpoch"]}
    assert partition_of(altered(client, held, epochs, ALL))["ErrorCode"] == ErrorCode.NONE


def test_producer_ids_come_in_blocks(client: ControllerClient, epochs: dict[int, int]) -> None:
    first, second = (client.ask("AllocateProducerIds", BrokerId=2, BrokerEpoch=epochs[2]) for _ in range(2))
    assert (first["ErrorCode"], first["ProducerIdLen"]) == (ErrorCode.NONE, 1_000)
    assert second["ProducerIdStart"] == first["ProducerIdStart"] + first["ProducerIdLen"]
    refused = client.ask("AllocateProducerIds", BrokerId=2, BrokerEpoch=epochs[2] - 1)
    assert refused["ErrorCode"] == ErrorCode.STALE_BROKER_EPOCH
    assert client.ask("AllocateProducerIds", BrokerId=77, BrokerEpoch=1)["ErrorCode"] != ErrorCode.NONE
