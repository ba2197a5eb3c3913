"""A trimmed log begins with a snapshot, which brokers fetch in pieces."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from brokers.gateways.kraft.log.entries import records_in
from brokers.wire.errors import ErrorCode
from tests.support.controller_client import ControllerClient
from tests.support.gateway_in_process import InProcessQuorum

METADATA = "__cluster_metadata"
TOPICS, PARTITIONS = 30, 3


def create(client: ControllerClient, name: str) -> None:
    topic = {"Name": name, "NumPartitions": PARTITIONS, "ReplicationFactor": 3}
    [response] = client.ask("CreateTopics", Topics=[topic])["Topics"]
    assert response["ErrorCode"] == ErrorCode.NONE


@pytest.fixture(scope="module")
def quorum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessQuorum]:
    folder: Path = tmp_path_factory.mktemp("trimmed")
    quorum = InProcessQuorum(folder, metadata_log_max_record_bytes_between_snapshots=2_000)
    client = quorum.client()
    quorum.join(client, 1, 2, 3)
    for number in range(TOPICS):
        create(client, f"t{number}")
    client.close()
    yield quorum
    quorum.stop()


def piece(client: ControllerClient, snapshot: dict[str, int], position: int, **given: Any) -> dict[str, Any]:
    epoch, version = given.pop("epoch", snapshot["Epoch"]), given.pop("version", 1)
    partition = {"Partition": 0, "CurrentLeaderEpoch": epoch, "SnapshotId": snapshot, "Position": position}
    response = client.ask("FetchSnapshot", version, Topics=[{"Name": METADATA, "Partitions": [partition]}], **given)
    assert response["ErrorCode"] == ErrorCode.NONE
    [answer] = response["Topics"][0]["Partitions"]
    return dict(answer)


def test_a_new_broker_fetches_the_newest_snapshot_in_pieces(
    quorum: InProcessQuorum, client: ControllerClient, tmp_path: Path
) -> None:
    epoch = quorum.state.quorum_epoch
    response = client.fetch(0, epoch)
    snapshot = response["SnapshotId"]
    assert (response["ErrorCode"], response["Records"]) == (ErrorCode.NONE, b"")
    assert 0 < response["LogStartOffset"] <= snapshot["EndOffset"] <= response["HighWatermark"]
    data, size = b"", 1
    while len(data) < size:
        answer = piece(client, snapshot, len(data), MaxBytes=777)
        assert (answer["ErrorCode"], answer["Position"]) == (ErrorCode.NONE, len(data))
        size = answer["Size"]
        data += answer["UnalignedRecords"]
    names = [record.name for record in records_in(data)]
    rest = client.fetch(snapshot["EndOffset"], epoch, snapshot["Epoch"])
    assert rest["SnapshotId"] == {"EndOffset": -1, "Epoch": -1}
    names += [record.name for record in records_in(rest["Records"])]
    assert names.count("TopicRecord") == TOPICS
    assert names.count("PartitionRecord") == TOPICS * PARTITIONS


@pytest.mark.parametrize("version", [0, 1])
def test_a_piece_comes_in_every_version(quorum: InProcessQuorum, client: ControllerClient, version: int) -> None:
    snapshot = client.fetch(0, quorum.state.quorum_epoch)["SnapshotId"]
    answer = piece(client, snapshot, 10, version=version, MaxBytes=5)
    assert (answer["ErrorCode"], len(answer["UnalignedRecords"])) == (ErrorCode.NONE, 5)


def test_a_snapshot_fetch_that_cannot_be_served_says_why(quorum: InProcessQuorum, client: ControllerClient) -> None:
    epoch = quorum.state.quorum_epoch
    snapshot = client.fetch(0, epoch)["SnapshotId"]
    size = piece(client, snapshot, 0)["Size"]
    for position in (-1, size, size + 1):
        assert piece(client, snapshot, position)["ErrorCode"] == ErrorCode.POSITION_OUT_OF_RANGE
    for wanted in (-1, -2, 0):
        answer = piece(client, snapshot, 0, MaxBytes=wanted)
        assert (answer["ErrorCode"], answer["UnalignedRecords"]) == (ErrorCode.NONE, b"")
    other = snapshot | {"EndOffset": snapshot["EndOffset"] + 1}
    assert piece(client, other, 0)["ErrorCode"] == ErrorCode.SNAPSHOT_NOT_FOUND
    assert piece(client, snapshot, 0, epoch=epoch - 1)["ErrorCode"] == ErrorCode.FENCED_LEADER_EPOCH
    assert piece(client, snapshot, 0, epoch=epoch + 1)["ErrorCode"] == ErrorCode.UNKNOWN_LEADER_EPOCH
