"""The bytes of the state: old bytes stay readable and unchanged."""

from collections.abc import Callable
from enum import IntEnum
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from state.broker import Broker, BrokerState
from state.cluster import Cluster, Totals
from state.codec import (
    CodecError,
    decode_cluster,
    decode_slices,
    decode_topics,
    encode_cluster,
    encode_stored,
    encode_topics,
    joined_topics,
)
from state.packed import Packed
from state.partition import (
    LeaderRecoveryState,
    Partition,
    PartitionState,
    RemovedReplica,
    ReplicaLag,
    ReplicaState,
    Topic,
    TopicState,
)
from state.registration import Listener
from state.slices import Slice, StoredPage, StoredSlice, stored, whole

GOLDEN = Path(__file__).parents[1] / "golden"
BROKER = Broker(
    broker=1,
    broker_epoch=4,
    incarnation="first",
    state=BrokerState.controlled_shutdown,
    rack="r1",
    listeners=(Listener("PLAINTEXT", "h", 9092),),
    log_dirs=("/a", "/b"),
    last_contact_ms=12_345,
    offline_log_dirs=("/b",),
)
CLUSTER = Cluster(
    version=1,
    shard=2,
    shards=16,
    seq=99,
    clock_ms=12_400,
    controller_id="c",
    controller_epoch=3,
    settings={"num.partitions": "2"},
    brokers={1: BROKER},
    config={"min.insync.replicas": "2"},
    broker_config={"1": {"log.retention.ms": "5"}},
    watermarks_due=(("t", 0), ("t", 1)),
    totals=Totals(1, 2, 3, 4, 5, 6, 7, 8, 9),
)
PARTITION = Partition(
    partition=0,
    state=PartitionState.OnlinePartition,
    replicas=(3, 1, 2),
    replica_states=(ReplicaState.OnlineReplica, ReplicaState.OfflineReplica, ReplicaState.NewReplica),
    isr=(3,),
    leader=3,
    leader_epoch=7,
    partition_epoch=11,
    leader_recovery_state=LeaderRecoveryState.RECOVERING,
    adding_replicas=(2,),
    removing_replicas=(1,),
    high_watermark=2**40,
    high_watermark_epoch=6,
    log_end_offsets=(2**40, -1, 5),
    offset_epochs=(7, -1, 6),
)
# The fields that version 1 has gained since, in order. Older bytes lack them, so each has a default.
GROWN_CLUSTER = replace(CLUSTER, deletions_due=("t",), balance_due_ms=300_000, imbalance_seq=98)
GROWN_PARTITION = replace(
    PARTITION, removed=(RemovedReplica(9, 6, ReplicaState.ReplicaDeletionStarted),), completed_epochs=(7, -1, 6)
)
LATER_GROWN_PARTITION = replace(
    GROWN_PARTITION,
    lags=(ReplicaLag(), ReplicaLag(12_345, 12_395, 2**40), ReplicaLag(-1, 12_400, 7)),
    lost_logs=(1,),
    requested_epochs=(7, 5, 7),
    received_epochs=(7, 4, 6),
)
LAST_GROWN_PARTITION = replace(LATER_GROWN_PARTITION, unassigned_replicas=(2, 1))
TOPICS = [Topic("t", "id-of-t", TopicState.created, {"a": "b"}, (PARTITION,))]

SLICES = [
    Slice(Topic("sliced", "id", TopicState.deleting, {"a": "b"}, (replace(PARTITION, partition=0),), True), 2),
    Slice(Topic("sliced", "id", TopicState.created, {}, (replace(PARTITION, partition=1),))),
]

# The original fields of version 1, in order. State is stored as arrays, so a position is a meaning.
BORN: dict[type[msgspec.Struct], str] = {
    Cluster: "version shard shards seq clock_ms controller_id controller_epoch settings brokers config broker_config"
    " watermarks_due totals",
    Totals: "topics partitions replicas offline under_replicated under_min_isr at_min_isr not_preferred reassigning",
    Broker: "broker broker_epoch incarnation state rack listeners log_dirs last_contact_ms offline_log_dirs",
    RemovedReplica: "broker leader_epoch state",
    ReplicaLag: "caught_up_time_ms report_time_ms leader_end_offset",
    Topic: "topic topic_id state config partitions",
    Slice: "topic count",
    StoredSlice: "topic topic_id state config deletion_waits count first_partition partitions",
    StoredPage: "packed plain",
    Packed: "count body lengths replicas_each replicas moving",
    Partition: "partition state replicas replica_states isr leader leader_epoch partition_epoch leader_recovery_state"
    " adding_replicas removing_replicas high_watermark high_watermark_epoch log_end_offsets offset_epochs",
}
BORN_VALUES: dict[type[IntEnum], str] = {
    BrokerState: "fenced active controlled_shutdown shutdown_allowed unregistered",
    PartitionState: "NonExistentPartition NewPartition OnlinePartition OfflinePartition",
    ReplicaState: "NonExistentReplica NewReplica OnlineReplica OfflineReplica ReplicaDeletionStarted"
    " ReplicaDeletionSuccessful ReplicaDeletionIneligible",
    LeaderRecoveryState: "RECOVERED RECOVERING",
    TopicState: "created deleting ineligible deleted",
}


def test_the_cluster_of_version_1_is_read() -> None:
    assert decode_cluster((GOLDEN / "cluster-v1.bin").read_bytes()) == CLUSTER


def test_the_topics_of_version_1_are_read() -> None:
    assert decode_topics((GOLDEN / "topics-v1.bin").read_bytes()) == TOPICS


def test_version_1_with_added_fields_is_read() -> None:
    grown = [Topic("t", "id-of-t", TopicState.created, {}, (GROWN_PARTITION,), deletion_waits=True)]
    assert decode_cluster((GOLDEN / "cluster-v1-grown.bin").read_bytes()) == GROWN_CLUSTER
    assert decode_topics((GOLDEN / "topics-v1-grown.bin").read_bytes()) == grown


@pytest.mark.parametrize(("when", "partition"), [("later", LATER_GROWN_PARTITION), ("last", LAST_GROWN_PARTITION)])
def test_version_1_with_later_fields_is_read(when: str, partition: Partition) -> None:
    grown = [Topic("t", "id-of-t", TopicState.created, {}, (partition,))]
    assert decode_topics((GOLDEN / f"topics-v1-grown-{when}.bin").read_bytes()) == grown


def in_version_2(slices: list[Slice]) -> bytes:
    """Write a page in which topics are not whole, as only earlier versions did."""
    return b"\2" + msgspec.msgpack.encode(slices)


def test_slices_of_version_2_are_read() -> None:
    assert decode_slices((GOLDEN / "topics-v2-slices.bin").read_bytes()) == SLICES
    assert decode_slices(in_version_2(SLICES)) == SLICES
    mixed = [*SLICES, Slice(TOPICS[0], 1)]
    assert decode_slices(in_version_2(mixed)) == mixed


def test_whole_topics_are_read_as_slices() -> None:
    slices = [Slice(topic, len(topic.partitions)) for topic in TOPICS]
    assert decode_slices(encode_topics(TOPICS)) == slices
    assert joined_topics([encode_topics(TOPICS)]) == TOPICS


def test_a_slice_is_not_read_as_a_whole_topic() -> None:
    with pytest.raises(CodecError, match="state of version 02; this code reads 01"):
        decode_topics(in_version_2(SLICES))
    with pytest.raises(CodecError, match="state of version none; this code reads 01"):
        decode_topics(b"")


@pytest.mark.parametrize("written", [in_version_2, lambda slices: encode_stored(list(map(stored, slices)))])
@pytest.mark.parametrize("lost", [0, 1])
def test_incomplete_slices_are_not_read_as_a_topic(lost: int, written: Callable[[list[Slice]], bytes]) -> None:
    pages = [written([one]) for one in SLICES]
    assert [len(topic.partitions) for topic in joined_topics(reversed(pages))] == [2]
    with pytest.raises(CodecError, match="topic sliced"):
        joined_topics(page for nth, page in enumerate(pages) if nth != lost)


LEFT_OVER = SLICES[1]


@pytest.mark.parametrize(
    "slices",
    [
        [replace(SLICES[0], count=1), LEFT_OVER],
        [SLICES[0], replace(LEFT_OVER, topic=replace(LEFT_OVER.topic, topic_id="former"))],
        [SLICES[0], Slice(replace(LEFT_OVER.topic, partitions=(replace(PARTITION, partition=2),)))],
    ],
    ids=["of a longer topic", "of another topic", "of other partitions"],
)
def test_a_slice_that_does_not_belong_to_the_others_is_refused(slices: list[Slice]) -> None:
    with pytest.raises(ValueError, match="topic sliced has"):
        whole(reversed(slices))


def test_what_is_written_is_read_back() -> None:
    assert decode_cluster(encode_cluster(CLUSTER)) == CLUSTER
    assert decode_topics(encode_topics(TOPICS)) == TOPICS


@pytest.mark.parametrize("kind", BORN)
def test_a_field_keeps_its_place_and_a_new_one_comes_last_with_a_default(kind: type[msgspec.Struct]) -> None:
    born = BORN[kind].split()
    fields = msgspec.structs.fields(kind)
    assert [field.name for field in fields[: len(born)]] == born
    assert [field.name for field in fields[len(born) :] if field.required] == []
    assert kind.__struct_config__.array_like


@pytest.mark.parametrize("kind", BORN_VALUES)
def test_an_enum_member_keeps_its_number(kind: type[IntEnum]) -> None:
    born = BORN_VALUES[kind].split()
    assert [(member.name, member.value) for member in kind][: len(born)] == [*zip(born, range(99), strict=False)]


@pytest.mark.parametrize("body", [b"", b"\x00\x90", b"\x02\x90", b"\x01", b"\x01\x90\x90", b"\x01\xc1", b"\x01\xa1x"])
def test_bytes_that_are_not_a_state_are_refused(body: bytes) -> None:
    with pytest.raises(CodecError):
        decode_topics(body)


def test_another_version_is_named() -> None:
    with pytest.raises(CodecError, match="version 63; this code reads 01"):
        decode_cluster(b"c")
