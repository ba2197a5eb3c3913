"""The answers of running brokers, message by message."""

import base64
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka.protocol.consumer import FetchRequest, ListOffsetsRequest, OffsetForLeaderEpochRequest
from kafka.protocol.metadata import ApiVersionsRequest, FindCoordinatorRequest, MetadataRequest
from kafka.protocol.producer import InitProducerIdRequest, ProduceRequest

from brokers.mock.apis.serving import APIS
from brokers.mock.messages import CATALOGUE
from brokers.wire.batch_header import batches_in
from brokers.wire.errors import ErrorCode
from tests.support.batches import batch
from tests.support.mock_cluster import MockCluster, running_cluster
from tests.support.raw import RawClient
from tests.support.waiting import wait_until

pytestmark = pytest.mark.mock_brokers

ALL = -1


def uuid_of(topic_id: str) -> uuid.UUID:
    return uuid.UUID(bytes=base64.urlsafe_b64decode(topic_id + "=="))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MockCluster]:
    """Two brokers; ``t`` has partition 0 led by broker 1 and partition 1 led by broker 2."""
    directory = tmp_path_factory.mktemp("cluster")
    with running_cluster(directory, size=2, auto_leader_rebalance_enable=False) as cluster:
        cluster.create_topic("t", {"0": [1, 2], "1": [2, 1]})
        cluster.create_topic("strict", {"0": [1, 2]}, min_insync_replicas="3")
        cluster.create_topic("small", {"0": [1]}, max_message_bytes="300")
        yield cluster


@pytest.fixture
def client(cluster: MockCluster) -> Iterator[RawClient]:
    """A connection to broker 1."""
    client = RawClient.to(cluster.folder(1))
    yield client
    client.close()


def produced(
    client: RawClient, records: bytes, topic: str = "t", partition: int = 0, acks: int = ALL, **given: Any
) -> Any:
    version = given.pop("version", 9)
    body = ProduceRequest(version=version, transactional_id=None, acks=acks, timeout_ms=given.pop("timeout_ms", 5_000))
    data = ProduceRequest.TopicProduceData
    body.topic_data = [data(name=topic, partition_data=[data.PartitionProduceData(index=partition, records=records)])]
    return client.ask(body).responses[0].partition_responses[0]


def fetched(client: RawClient, offset: int, topic: str = "t", partition: int = 0, **given: Any) -> Any:
    """Fetch from one partition; with ``replica`` and ``epoch`` as a follower does."""
    version = given.get("version", 11)
    wanted = FetchRequest.FetchTopic.FetchPartition(
        partition=partition,
        current_leader_epoch=given.get("epoch", -1),
        fetch_offset=offset,
        log_start_offset=-1,
        partition_max_bytes=given.get("max_bytes", 1 << 20),
    )
    body = FetchRequest(
        version=version,
        replica_id=given.get("replica", -1),
        max_wait_ms=given.get("wait_ms", 0),
        min_bytes=given.get("min_bytes", 1),
        max_bytes=1 << 20,
        isolation_level=0,
        topics=[FetchRequest.FetchTopic(topic=topic, topic_id=given.get("topic_id"), partitions=[wanted])],
        forgotten_topics_data=[],
        rack_id="",
    )
    return client.ask(body).responses[0].partitions[0]


def end_offset(client: RawClient) -> int:
    return produced(client, batch(b"mark")).base_offset + 1


@pytest.mark.parametrize("version", range(5))
def test_the_supported_versions_are_listed(client: RawClient, version: int) -> None:
    body = ApiVersionsRequest(version=version, client_software_name="test", client_software_version="1")
    answer = client.ask(body)
    assert answer.error_code == 0
    assert {a.api_key: a.max_version for a in answer.api_keys} == {
        key: CATALOGUE.requests[key].layout.valid.high for key in APIS
    }


@pytest.mark.parametrize("version", range(13))
def test_metadata_is_served_in_every_version(client: RawClient, cluster: MockCluster, version: int) -> None:
    topic = MetadataRequest.MetadataRequestTopic
    answer = client.ask(MetadataRequest(version=version, topics=[topic(name="t"), topic(name="none")]))
    assert [b.node_id for b in answer.brokers] == [1, 2]
    known, unknown = answer.topics
    assert (known.error_code, unknown.error_code) == (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert [(p.partition_index, p.leader_id, p.isr_nodes) for p in known.partitions] == [(0, 1, [1, 2]), (1, 2, [2, 1])]
    everything = client.ask(MetadataRequest(version=version, topics=None if version else []))
    assert {t.name for t in everything.topics} == {"t", "strict", "small"}


def test_topics_are_found_by_id(client: RawClient, cluster: MockCluster) -> None:
    topic_id = uuid_of(next(t["topic_id"] for t in cluster.view()["topics"] if t["topic"] == "t"))
    topic = MetadataRequest.MetadataRequestTopic
    answer = client.ask(MetadataRequest(version=12, topics=[topic(name=None, topic_id=topic_id)]))
    assert answer.topics[0].name == "t"
    assert fetched(client, 0, topic_id=topic_id, version=13).error_code == 0
    stranger = uuid_of("AAAAAAAAAAAAAAAAAAAAAw")
    assert fetched(client, 0, topic_id=stranger, version=13).error_code == ErrorCode.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize("version", range(3, 13))
@pytest.mark.parametrize("acks", [1, ALL])
def test_produced_records_are_fetched(client: RawClient, version: int, acks: int) -> None:
    records = batch(b"one", b"two")
    answer = produced(client, records, acks=acks, version=version)
    assert answer.error_code == 0
    got = fetched(client, answer.base_offset, wait_ms=3_000)
    assert bytes(got.records)[16:] == records[16:]
    assert got.high_watermark >= answer.base_offset + 2


@pytest.mark.parametrize("version", range(4, 13))
def test_records_are_fetched_in_every_version(client: RawClient, version: int) -> None:
    offset = produced(client, batch(b"x")).base_offset
    got = fetched(client, offset, version=version)
    assert next(b.base_offset for _, b in batches_in(bytes(got.records))) == offset


def test_consumers_read_below_the_high_watermark(client: RawClient, cluster: MockCluster) -> None:
    cluster.freeze(2)  # while it is frozen nothing is replicated
    try:
        offset = produced(client, batch(b"x"), acks=1).base_offset
        got = fetched(client, offset, wait_ms=300)
        assert (got.error_code, got.records or b"", got.high_watermark) == (0, b"", offset)
        assert produced(client, batch(b"y"), timeout_ms=200).error_code == ErrorCode.REQUEST_TIMED_OUT
    finally:
        cluster.thaw(2)
    assert bytes(fetched(client, offset, wait_ms=5_000).records)


def test_a_fetch_waits_for_new_records(client: RawClient, cluster: MockCluster) -> None:
    offset = end_offset(client)
    began = time.monotonic()
    assert not fetched(client, offset, wait_ms=400).records
    assert time.monotonic() - began > 0.35
    assert fetched(client, offset + 10_000).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_broker_that_does_not_lead_says_so(client: RawClient) -> None:
    assert produced(client, batch(b"x"), partition=1).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert fetched(client, 0, partition=1).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert produced(client, batch(b"x"), partition=9).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert fetched(client, 0, topic="none").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_invalid_records_are_refused(client: RawClient) -> None:
    corrupt = batch(b"x")[:-1] + b"!"
    assert produced(client, corrupt).error_code == ErrorCode.CORRUPT_MESSAGE
    assert produced(client, batch(b"x" * 400), topic="small").error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert produced(client, batch(b"x"), acks=2).error_code == ErrorCode.INVALID_REQUIRED_ACKS


def test_min_isr_is_capped_by_the_number_of_replicas(client: RawClient) -> None:
    """As in ``Partition.effectiveMinIsr``: min.insync.replicas is 3, but there are only two replicas."""
    assert produced(client, batch(b"x"), topic="strict").error_code == 0


def test_acks_0_has_no_answer_and_its_failure_ends_the_connection(cluster: MockCluster) -> None:
    client = RawClient.to(cluster.folder(1))
    data = ProduceRequest.TopicProduceData

    def send(partition: int) -> None:
        entry = data.PartitionProduceData(index=partition, records=batch(b"x"))
        client.send(
            ProduceRequest(version=9, acks=0, timeout_ms=1_000, topic_data=[data(name="t", partition_data=[entry])])
        )

    before = end_offset(client)
    send(0)
    assert end_offset(client) == before + 2
    send(1)
    with pytest.raises(ConnectionError):
        client.frame()


def test_other_leader_epochs_are_fenced_and_leave_no_trace(client: RawClient, cluster: MockCluster) -> None:
    epoch = cluster.partitions("t")[0]["leader_epoch"]
    for wanted, error in ((epoch - 1, ErrorCode.FENCED_LEADER_EPOCH), (epoch + 1, ErrorCode.UNKNOWN_LEADER_EPOCH)):
        if wanted >= 0:
            assert fetched(client, 0, epoch=wanted).error_code == error
            assert fetched(client, 0, epoch=wanted, replica=2).error_code == error
    assert fetched(client, 0, epoch=epoch, replica=7).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def listed(client: RawClient, timestamp: int, version: int = 7) -> Any:
    topic = ListOffsetsRequest.ListOffsetsTopic
    wanted = topic.ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=timestamp)
    body = ListOffsetsRequest(version=version, replica_id=-1, isolation_level=0)
    body.topics = [topic(name="t", partitions=[wanted])]
    return client.ask(body).topics[0].partitions[0]


def test_offsets_are_listed(client: RawClient) -> None:
    offset = produced(client, batch(b"a", b"b", timestamp=5_000_000)).base_offset
    assert listed(client, -2).offset == 0
    assert listed(client, -1).offset == offset + 2
    assert (listed(client, 5_000_001).offset, listed(client, 5_000_001).timestamp) == (offset + 1, 5_000_001)
    assert (listed(client, -3).offset, listed(client, -3).timestamp) == (offset + 1, 5_000_001)
    assert listed(client, 6_000_000).offset == -1
    for version in range(1, 8):
        assert listed(client, -1, version).offset == offset + 2


@pytest.mark.parametrize("version", range(2, 5))
def test_the_end_of_a_leader_epoch_is_answered(client: RawClient, cluster: MockCluster, version: int) -> None:
    end = end_offset(client)
    epoch = cluster.partitions("t")[0]["leader_epoch"]
    topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic

    def wanted(current: int, of: int) -> Any:
        entry = topic.OffsetForLeaderPartition(partition=0, current_leader_epoch=current, leader_epoch=of)
        body = OffsetForLeaderEpochRequest(version=version, replica_id=-1)
        body.topics = [topic(topic="t", partitions=[entry])]
        return client.ask(body).topics[0].partitions[0]

    assert (wanted(epoch, epoch).leader_epoch, wanted(epoch, epoch).end_offset) == (epoch, end)
    assert wanted(-1, epoch + 5).end_offset == -1
    assert wanted(epoch + 1, epoch).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_producer_ids_are_given_and_coordinators_are_not(client: RawClient, cluster: MockCluster) -> None:
    body = InitProducerIdRequest(version=4, transactional_id=None, transaction_timeout_ms=1, producer_id=-1)
    other = RawClient.to(cluster.folder(2))
    given = [c.ask(body).producer_id for c in (client, client, other)]
    assert len(set(given)) == 3
    body = InitProducerIdRequest(version=4, transactional_id="x", transaction_timeout_ms=1, producer_id=-1)
    assert client.ask(body).error_code == ErrorCode.INVALID_REQUEST
    for version in range(5):
        answer = client.ask(FindCoordinatorRequest(version=version, key="g", key_type=0, coordinator_keys=["g"]))
        known = answer.coordinators[0] if version == 4 else answer
        assert known.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_batch_sent_twice_is_stored_once(client: RawClient) -> None:
    records = batch(b"a", b"b", producer_id=77, producer_epoch=0, sequence=0)
    first, second = produced(client, records), produced(client, records)
    assert (first.error_code, second.error_code) == (0, 0)
    assert first.base_offset == second.base_offset


def test_followers_hold_the_same_bytes(client: RawClient, cluster: MockCluster) -> None:
    end_offset(client)

    def log(broker: int) -> bytes:
        path: Path = cluster.folder(broker) / "t-0" / f"{0:020d}.log"
        return path.read_bytes()

    wait_until(lambda: log(1) == log(2), "the follower to hold the leader's bytes")
