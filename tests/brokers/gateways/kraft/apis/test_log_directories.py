"""A broker with two log directories: AssignReplicasToDirs, and a directory that fails."""

from itertools import groupby
from typing import Any

import pytest

from brokers.gateways.kraft.metadata.image import MetadataImage
from brokers.gateways.kraft.metadata.translate import translate
from brokers.wire.errors import ErrorCode
from state.decisions import decode
from state.log_directory import UNASSIGNED
from tests.support.controller_client import ControllerClient
from tests.support.gateway_in_process import InProcessQuorum, heartbeat

pytestmark = pytest.mark.usefixtures("epochs")

A, B = "30AAAAAAAAAAAAAAAAAAAA", "30BAAAAAAAAAAAAAAAAAAA"
BROKER = 30


@pytest.fixture(scope="module")
def epoch(quorum: InProcessQuorum, epochs: dict[int, int]) -> int:
    """The epoch of a broker with the directories A and B, which leads both partitions of the topic "placed"."""
    client = quorum.client()
    try:
        answer = client.ask("BrokerRegistration", **quorum.registration(BROKER, LogDirs=[A, B]))
        assert answer["ErrorCode"] == ErrorCode.NONE
        beat = client.ask("BrokerHeartbeat", **heartbeat(BROKER, answer["BrokerEpoch"]))
        assert beat["IsFenced"] is False
        assignment = [{"PartitionIndex": number, "BrokerIds": [BROKER, 1]} for number in range(2)]
        topic = {"Name": "placed", "NumPartitions": -1, "ReplicationFactor": -1, "Assignments": assignment}
        [created] = client.ask("CreateTopics", Topics=[topic], timeoutMs=9_000)["Topics"]
        assert created["ErrorCode"] == ErrorCode.NONE
        return int(answer["BrokerEpoch"])
    finally:
        client.close()


def image(quorum: InProcessQuorum) -> MetadataImage:
    """Return what the gateway's decisions so far made of the metadata."""
    image = MetadataImage()
    said = [decode(one.body) for one in quorum.bus.decisions((0, -1), 10_000)]
    for _, decisions in groupby(said, key=lambda decision: decision.seq):
        image = translate(image, list(decisions)).image
    return image


def directories(quorum: InProcessQuorum, number: int) -> tuple[str, ...]:
    """Return what brokers know of the directories of a partition."""
    held = image(quorum)
    return held.topics[held.topic_ids["placed"]].partitions[number].directories


def assign(quorum: InProcessQuorum, client: ControllerClient, epoch: int, **by_directory: Any) -> dict[str, Any]:
    topic_id = image(quorum).topic_ids["placed"]
    listed = [
        {
            "Id": {"A": A, "B": B}[name],
            "Topics": [{"TopicId": topic_id, "Partitions": [{"PartitionIndex": number} for number in numbers]}],
        }
        for name, numbers in by_directory.items()
    ]
    return client.ask("AssignReplicasToDirs", BrokerId=BROKER, BrokerEpoch=epoch, Directories=listed)


def errors(response: dict[str, Any]) -> dict[tuple[str, int], int]:
    return {
        (one["Id"], partition["PartitionIndex"]): partition["ErrorCode"]
        for one in response["Directories"]
        for topic in one["Topics"]
        for partition in topic["Partitions"]
    }


def test_a_failed_directory_takes_only_its_replicas_offline(
    quorum: InProcessQuorum, client: ControllerClient, epoch: int
) -> None:
    of_one = quorum.registration(1)["LogDirs"][0]
    assert directories(quorum, 0) == (UNASSIGNED, of_one)
    response = assign(quorum, client, epoch, A=[0], B=[1, 7])
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert errors(response) == {(A, 0): ErrorCode.NONE, (B, 1): ErrorCode.NONE, (B, 7): unknown}
    assert [directories(quorum, number) for number in (0, 1)] == [(A, of_one), (B, of_one)]
    beat = client.ask("BrokerHeartbeat", **heartbeat(BROKER, epoch, OfflineLogDirs=[A]))
    assert (beat["ErrorCode"], beat["IsFenced"]) == (ErrorCode.NONE, False)
    assert [quorum.partition("placed", number)["leader"] for number in (0, 1)] == [1, BROKER]
    assert image(quorum).brokers[BROKER].log_dirs == (B,)
    # The replica is where it was: there is nothing of it in the other directory.
    assert directories(quorum, 0) == (A, of_one)
    assert quorum.partition("placed", 0)["directories"] == {str(BROKER): A}
    assert quorum.broker(BROKER)["offline_log_dirs"] == (A,)


def test_another_epoch_is_refused(quorum: InProcessQuorum, client: ControllerClient, epoch: int) -> None:
    response = assign(quorum, client, epoch - 1, A=[0])
    assert (response["ErrorCode"], response["Directories"]) == (ErrorCode.STALE_BROKER_EPOCH, [])


def test_an_unknown_topic_is_answered_for_each_partition(client: ControllerClient, epoch: int) -> None:
    unknown = {"TopicId": "30ZAAAAAAAAAAAAAAAAAAA", "Partitions": [{"PartitionIndex": 0}]}
    response = client.ask(
        "AssignReplicasToDirs", BrokerId=BROKER, BrokerEpoch=epoch, Directories=[{"Id": B, "Topics": [unknown]}]
    )
    assert errors(response) == {(B, 0): ErrorCode.UNKNOWN_TOPIC_ID}


def test_a_directory_fails_while_a_broker_starts_and_another_one_while_it_stops(
    quorum: InProcessQuorum, client: ControllerClient
) -> None:
    first, second, third = (f"31{letter}AAAAAAAAAAAAAAAAAAA" for letter in "ABC")
    answer = client.ask("BrokerRegistration", **quorum.registration(31, LogDirs=[first, second, third]))
    epoch = answer["BrokerEpoch"]
    beat = client.ask("BrokerHeartbeat", **heartbeat(31, epoch, OfflineLogDirs=[first]))
    assert (beat["ErrorCode"], beat["IsFenced"]) == (ErrorCode.NONE, False)
    told = image(quorum).brokers[31]
    assert (told.fenced, told.in_controlled_shutdown, told.log_dirs) == (False, False, (second, third))
    beat = client.ask("BrokerHeartbeat", **heartbeat(31, epoch, OfflineLogDirs=[first, second], WantShutDown=True))
    assert beat["ErrorCode"] == ErrorCode.NONE
    told = image(quorum).brokers[31]
    assert (told.in_controlled_shutdown, told.log_dirs) == (True, (third,))
