"""How brokers follow the metadata log, and how the quorum is described to admins."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from brokers.gateways.kraft.log.entries import records_in
from brokers.wire.errors import ErrorCode
from brokers.wire.record_batch import decode_batches
from tests.support.controller_client import ControllerClient
from tests.support.gateway_in_process import InProcessQuorum
from tests.support.waiting import wait_until

pytestmark = pytest.mark.usefixtures("epochs")
METADATA = "__cluster_metadata"
DESCRIBED = [{"TopicName": METADATA, "Partitions": [{"PartitionIndex": 0}]}]
LONG_MS = 20_000


@pytest.fixture(scope="module")
def quorum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessQuorum]:
    """A quorum of two gateways that answers a long poll after a second."""
    quorum = InProcessQuorum(tmp_path_factory.mktemp("quorum"), gateways=2, fetch_max_wait_ms=1_000)
    yield quorum
    quorum.stop()


@pytest.fixture
def epoch(quorum: InProcessQuorum) -> int:
    return quorum.state.quorum_epoch


def end(client: ControllerClient, epoch: int) -> int:
    return int(client.fetch(0, epoch)["HighWatermark"])


def create(client: ControllerClient, name: str, partitions: int = 1) -> None:
    topic = {"Name": name, "NumPartitions": partitions, "ReplicationFactor": 3}
    [response] = client.ask("CreateTopics", Topics=[topic])["Topics"]
    assert response["ErrorCode"] == ErrorCode.NONE


def test_the_whole_log_is_read_in_pieces(client: ControllerClient, epoch: int) -> None:
    whole = client.fetch(0, epoch)
    assert (whole["ErrorCode"], whole["LogStartOffset"]) == (ErrorCode.NONE, 0)
    data, offset = b"", 0
    while offset < whole["HighWatermark"]:
        piece = client.fetch(offset, epoch, epoch if offset else 0, MaxBytes=1)["Records"]
        # Even the smallest fetch gets one whole batch.
        [batch] = decode_batches(piece)
        data, offset = data + piece, batch.next_offset
    assert data == whole["Records"]
    assert {record.name for record in records_in(data)} >= {"RegisterBrokerRecord", "FeatureLevelRecord"}


def test_a_fetch_has_as_many_batches_as_fit(client: ControllerClient, epoch: int) -> None:
    for name in ("fits-1", "fits-2", "fits-3"):
        create(client, name)
    [first, second, *others] = decode_batches(client.fetch(0, epoch)["Records"])
    assert len(others) > 1
    enough = first.size + second.size
    for size, count in [(enough - 1, 1), (enough, 2), (enough + 1, 2)]:
        assert len([*decode_batches(client.fetch(0, epoch, MaxBytes=size)["Records"])]) == count, size


def test_a_fetch_has_no_more_than_the_gateways_limit(tmp_path: Path) -> None:
    quorum = InProcessQuorum(tmp_path, fetch_max_bytes=1)
    client = quorum.client()
    assert end(client, quorum.state.quorum_epoch) > 1
    [_] = decode_batches(client.fetch(0, quorum.state.quorum_epoch)["Records"])
    client.close()
    quorum.stop()


@pytest.mark.parametrize("version", range(12, 19))
def test_the_log_is_read_in_every_version(client: ControllerClient, epoch: int, version: int) -> None:
    partition = {"Partition": 0, "CurrentLeaderEpoch": epoch, "LastFetchedEpoch": 0}
    topic: dict[str, Any] = {"Partitions": [partition]}
    topic |= {"Topic": METADATA} if version < 13 else {"TopicId": "AAAAAAAAAAAAAAAAAAAAAQ"}
    response = client.ask("Fetch", version, MaxWaitMs=0, MaxBytes=1 << 20, Topics=[topic])
    assert response["ErrorCode"] == ErrorCode.NONE
    [answer] = response["Responses"][0]["Partitions"]
    assert (answer["ErrorCode"], answer["HighWatermark"]) == (ErrorCode.NONE, end(client, epoch))
    assert len(answer["Records"]) > 0


def test_a_fetch_in_another_epoch_names_the_leader(
    quorum: InProcessQuorum, client: ControllerClient, epoch: int
) -> None:
    for given, error in [(epoch - 1, ErrorCode.FENCED_LEADER_EPOCH), (epoch + 1, ErrorCode.UNKNOWN_LEADER_EPOCH)]:
        response = client.fetch(0, given)
        assert (response["ErrorCode"], response["Records"]) == (error, b"")
        assert response["CurrentLeader"] == {"LeaderId": quorum.state.voter, "LeaderEpoch": epoch}


def test_a_standby_sends_everyone_to_the_leader(quorum: InProcessQuorum, epoch: int) -> None:
    standby = quorum.client(101)
    response = standby.fetch(0, epoch)
    assert (response["ErrorCode"], response["Records"]) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, b"")
    assert response["CurrentLeader"] == {"LeaderId": 100, "LeaderEpoch": epoch}
    for name, given in [
        ("BrokerRegistration", quorum.registration(50)),
        ("BrokerHeartbeat", {"BrokerId": 1, "BrokerEpoch": 1}),
        ("AlterPartition", {"BrokerId": 1, "Topics": []}),
        ("AllocateProducerIds", {"BrokerId": 1}),
        ("DescribeQuorum", {"Topics": DESCRIBED}),
        ("UnregisterBroker", {"BrokerId": 1}),
        ("UnregisterController", {"ControllerId": 1}),
        ("Envelope", {"RequestData": b"", "ClientHostAddress": b""}),
    ]:
        assert standby.ask(name, **given)["ErrorCode"] == ErrorCode.NOT_CONTROLLER, name
    topic = {"Name": "t", "NumPartitions": 1, "ReplicationFactor": 1}
    assert standby.ask("CreateTopics", Topics=[topic])["Topics"][0]["ErrorCode"] == ErrorCode.NOT_CONTROLLER
    assert standby.ask("ApiVersions")["ErrorCode"] == ErrorCode.NONE
    standby.close()


def test_a_broker_with_a_diverged_log_is_told_where_it_diverges(client: ControllerClient, epoch: int) -> None:
    last = end(client, epoch)
    response = client.fetch(last + 5, epoch, epoch)
    assert (response["ErrorCode"], response["DivergingEpoch"]) == (ErrorCode.NONE, {"Epoch": epoch, "EndOffset": last})
    assert response["Records"] == b""
    response = client.fetch(last, epoch, epoch + 3)
    assert response["DivergingEpoch"] == {"Epoch": epoch, "EndOffset": last}
    response = client.fetch(last, epoch, epoch)
    assert response["DivergingEpoch"] == {"Epoch": -1, "EndOffset": -1}


def test_a_broker_that_has_read_more_than_the_log_has_is_not_told_to_truncate(
    client: ControllerClient, epoch: int
) -> None:
    last = end(client, epoch)
    assert client.fetch(last + 5, epoch, epoch, replica=1)["ErrorCode"] == ErrorCode.BROKER_NOT_AVAILABLE
    assert client.fetch(last, epoch, epoch, replica=1)["ErrorCode"] == ErrorCode.NONE
    assert client.fetch(last + 5, epoch, epoch + 3, replica=1)["ErrorCode"] == ErrorCode.BROKER_NOT_AVAILABLE
    response = client.fetch(last, epoch, epoch + 3, replica=1)
    assert response["DivergingEpoch"] == {"Epoch": epoch, "EndOffset": last}


def test_a_fetch_at_the_end_is_answered_when_the_log_grows(
    quorum: InProcessQuorum, client: ControllerClient, epoch: int
) -> None:
    last = end(client, epoch)
    fetching = quorum.client()
    began = time.monotonic()
    response = fetching.fetch(last, epoch, epoch, high_watermark=last, MaxWaitMs=300)
    assert (response["Records"], response["HighWatermark"]) == (b"", last)
    assert time.monotonic() - began >= 0.3
    partition = {
        "Partition": 0,
        "CurrentLeaderEpoch": epoch,
        "FetchOffset": last,
        "LastFetchedEpoch": epoch,
        "HighWatermark": last,
    }
    fetching.send(
        "Fetch",
        MaxWaitMs=LONG_MS,
        MaxBytes=1 << 20,
        Topics=[{"TopicId": "AAAAAAAAAAAAAAAAAAAAAQ", "Partitions": [partition]}],
    )
    create(client, "awaited")
    [answer] = fetching.receive("Fetch")["Responses"][0]["Partitions"]
    # One response has both the new records and the high watermark that covers them.
    [batch, *_] = decode_batches(answer["Records"])
    assert batch.base_offset == last
    assert answer["HighWatermark"] > last
    fetching.close()


def test_a_fetch_that_does_not_know_the_high_watermark_is_answered_at_once(
    client: ControllerClient, epoch: int
) -> None:
    last = end(client, epoch)
    began = time.monotonic()
    response = client.fetch(last, epoch, epoch, high_watermark=last - 1, MaxWaitMs=LONG_MS)
    assert response["HighWatermark"] == last
    assert time.monotonic() - began < LONG_MS / 1000


def test_nothing_is_served_to_another_cluster(client: ControllerClient, epoch: int) -> None:
    response = client.fetch(0, epoch, ClusterId="AAAAAAAAAAAAAAAAAAAAAA")
    assert (response["ErrorCode"], response["Responses"]) == (ErrorCode.INCONSISTENT_CLUSTER_ID, [])
    response = client.ask("FetchSnapshot", ClusterId="AAAAAAAAAAAAAAAAAAAAAA", Topics=[])
    assert response["ErrorCode"] == ErrorCode.INCONSISTENT_CLUSTER_ID


def test_only_the_metadata_log_is_served(client: ControllerClient) -> None:
    partition = {"Partition": 0}
    other = [{"TopicId": "AAAAAAAAAAAAAAAAAAAAew", "Partitions": [partition]}]
    assert client.ask("Fetch", Topics=other)["ErrorCode"] == ErrorCode.INVALID_REQUEST
    assert client.ask("Fetch", Topics=[])["ErrorCode"] == ErrorCode.INVALID_REQUEST
    assert client.ask("FetchSnapshot", Topics=[])["ErrorCode"] == ErrorCode.INVALID_REQUEST


def test_the_quorum_is_described(quorum: InProcessQuorum, client: ControllerClient, epoch: int) -> None:
    last = end(client, epoch)
    client.fetch(last, epoch, epoch, replica=1)
    response = client.forward("DescribeQuorum", Topics=DESCRIBED)
    assert response["ErrorCode"] == ErrorCode.NONE
    [partition] = response["Topics"][0]["Partitions"]
    assert (partition["LeaderId"], partition["LeaderEpoch"], partition["HighWatermark"]) == (100, epoch, last)
    assert [voter["ReplicaId"] for voter in partition["CurrentVoters"]] == [100, 101]
    assert [(one["ReplicaId"], one["LogEndOffset"]) for one in partition["Observers"]] == [(1, last)]
    [observer] = partition["Observers"]
    assert observer["LastCaughtUpTimestamp"] == observer["LastFetchTimestamp"] > 0
    assert [node["NodeId"] for node in response["Nodes"]] == [100, 101]


def test_a_broker_that_stopped_fetching_shows_when_it_last_fetched(client: ControllerClient, epoch: int) -> None:
    def response() -> dict[int, int]:
        [partition] = client.ask("DescribeQuorum", Topics=DESCRIBED)["Topics"][0]["Partitions"]
        return {one["ReplicaId"]: one["LastFetchTimestamp"] for one in partition["Observers"]}

    last = end(client, epoch)
    for broker in (2, 3):
        client.fetch(last, epoch, epoch, replica=broker)
    before = response()

    def goes_on() -> bool:
        client.fetch(last, epoch, epoch, replica=3)
        return response()[3] > before[3]

    wait_until(goes_on, "a later time", LONG_MS / 1000)
    assert response()[2] == before[2]


@pytest.mark.parametrize("version", range(3))
def test_the_quorum_is_described_in_every_version(client: ControllerClient, version: int) -> None:
    response = client.ask("DescribeQuorum", version, Topics=DESCRIBED)
    assert response["Topics"][0]["Partitions"][0]["LeaderId"] == 100


def test_the_controllers_are_described_on_request(quorum: InProcessQuorum, client: ControllerClient) -> None:
    response = client.ask("DescribeCluster", EndpointType=2)
    assert (response["ErrorCode"], response["ClusterId"], response["ControllerId"]) == (
        ErrorCode.NONE,
        quorum.cluster_id,
        100,
    )
    assert [(one["BrokerId"], one["Port"]) for one in response["Brokers"]] == [(v.voter, v.port) for v in quorum.voters]
    assert client.ask("DescribeCluster", EndpointType=1)["ErrorCode"] == ErrorCode.MISMATCHED_ENDPOINT_TYPE


@pytest.mark.parametrize("version", range(5))
def test_versions_and_features_are_listed(client: ControllerClient, version: int) -> None:
    response = client.ask("ApiVersions", version)
    assert response["ErrorCode"] == ErrorCode.NONE
    keys = {one["ApiKey"] for one in response["ApiKeys"]}
    assert keys >= {1, 18, 55, 56, 58, 62, 63}
    if version >= 3:
        assert ("metadata.version", 27) in {
            (one["Name"], one["MaxVersionLevel"]) for one in response["FinalizedFeatures"]
        }
        # Clients of version 3 cannot read a feature whose lowest level is 0 (KAFKA-17492).
        assert all(one["MinVersion"] > 0 for one in response["SupportedFeatures"] if version == 3)


def test_a_batch_larger_than_the_requested_size_is_sent_whole(client: ControllerClient, epoch: int) -> None:
    last = end(client, epoch)
    create(client, "large", 400)
    response = client.fetch(last, epoch, epoch, MaxBytes=100)
    [batch] = decode_batches(response["Records"])
    assert len(response["Records"]) > 100
    assert batch.base_offset == last
