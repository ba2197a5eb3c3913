"""Requests that announce more elements than a broker is willing to build."""

import struct
import time

import pytest
from kafka.protocol.consumer import FetchRequest
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.producer import ProduceRequest

from brokers.mock.apis.serving import APIS
from brokers.wire.element_count import ELEMENTS_MAX, check_elements
from brokers.wire.messages import FRAME_LENGTH_BYTES, WireError, decode_request, encode_request
from brokers.wire.plain import Fault, Reader

VERSIONS = [
    (served.request.__name__, version)
    for served in APIS.values()
    for version in range(served.min_version, served.max_version + 1)
]


def header(key: int, version: int, client_id: bytes = b"") -> bytes:
    return struct.pack(">hhih", key, version, 1, len(client_id)) + client_id


def names(count: int) -> bytes:
    """Encode a Metadata request in version 1 for topics with empty names."""
    return header(3, 1) + struct.pack(">i", count) + bytes(2 * count)


def fetch(version: int, partitions: int) -> bytes:
    topic = FetchRequest.FetchTopic
    wanted = [
        topic.FetchPartition(
            partition=number,
            current_leader_epoch=1,
            fetch_offset=5,
            last_fetched_epoch=-1,
            log_start_offset=0,
            partition_max_bytes=9,
        )
        for number in range(partitions)
    ]
    body = FetchRequest(
        version=version,
        replica_state=FetchRequest.ReplicaState(replica_id=1, replica_epoch=2),
        topics=[topic(topic="t", partitions=wanted)],
        forgotten_topics_data=[FetchRequest.ForgottenTopic(topic="u", partitions=[1, 2])],
        rack_id="r",
    )
    return encode_request(body, 1, "client")[FRAME_LENGTH_BYTES:]


def produce(version: int, records: bytes) -> bytes:
    data = ProduceRequest.TopicProduceData
    topics = [data(name="t", partition_data=[data.PartitionProduceData(index=0, records=records)])]
    body = ProduceRequest(version=version, transactional_id=None, acks=1, timeout_ms=1, topic_data=topics)
    return encode_request(body, 1, "client")[FRAME_LENGTH_BYTES:]


@pytest.mark.parametrize("version", [4, 7, 11, 12, 13, 15, 16])
def test_a_request_is_walked_to_its_end(version: int) -> None:
    frame = fetch(version, 3)
    check_elements(frame, "FetchRequest", version)
    with pytest.raises(Fault, match=r"bytes are needed|end within"):
        check_elements(frame[:-1], "FetchRequest", version)
    produced = produce(min(version, 12), bytes(1_000))
    check_elements(produced, "ProduceRequest", min(version, 12))
    with pytest.raises(Fault, match=r"bytes are needed|end within"):
        check_elements(produced[:-1], "ProduceRequest", min(version, 12))


def test_a_large_request_within_the_limit_is_read() -> None:
    request = decode_request(fetch(15, 3_000), APIS)
    assert len(request.body.topics[0].partitions) == 3_000
    assert len(decode_request(produce(9, bytes(1_000_000)), APIS).body.topic_data[0].partition_data[0].records) == 10**6
    asked = MetadataRequest(version=9, topics=[MetadataRequest.MetadataRequestTopic(name="t" * 200)] * 1_000)
    frame = encode_request(asked, 1, "client")[FRAME_LENGTH_BYTES:]
    assert len(decode_request(frame, APIS).body.topics) == 1_000


def test_a_request_with_too_many_elements_is_refused_at_once() -> None:
    began = time.process_time()
    for frame in (
        names(1_000_000),
        header(3, 9) + b"\0" + b"\xc1\x84\x3d" + bytes(2_000_000),
        header(3, 9) + b"\xff\xff\xff\x7f" + bytes(1_000_000),
    ):
        with pytest.raises(WireError, match=f"more than {ELEMENTS_MAX} elements"):
            decode_request(frame, APIS)
    assert time.process_time() - began < 0.5
    check_elements(names(ELEMENTS_MAX), "MetadataRequest", 1)


def test_a_request_with_tagged_fields_in_many_elements_is_refused_at_once() -> None:
    """For each struct with tagged fields the codec copies all bytes that follow."""
    element = b"\x01" + b"\x01\x63\x00"
    frame = header(3, 9) + b"\0" + b"\xd1\x86\x03" + element * 50_000 + bytes(1_000_000)
    began = time.process_time()
    with pytest.raises(WireError, match="tagged fields in too many elements"):
        decode_request(frame, APIS)
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize(("name", "version"), VERSIONS)
def test_the_layout_of_every_served_request_is_known(name: str, version: int) -> None:
    with pytest.raises(Fault, match="bytes are needed"):
        check_elements(b"", name, version)


def test_fields_of_fixed_size_are_skipped_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """A follower of thousands of partitions has them all in each of its fetches."""
    taken: list[int] = []
    take = Reader.take

    def counted(reader: Reader, size: int) -> memoryview:
        taken.append(size)
        return take(reader, size)

    frame = fetch(11, 1_000)
    monkeypatch.setattr(Reader, "take", counted)
    check_elements(frame, "FetchRequest", 11)
    assert 1_000 < len(taken) < 1_100
