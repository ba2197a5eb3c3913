"""The bytes of the state: stored bytes stay readable."""

from enum import IntEnum
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from state.broker import Broker, BrokerState
from state.cluster import Cluster, Totals
from state.level import FIRST_LEVEL, NEWEST_LEVEL
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
from state.stored.codec import (
    CodecError,
    LevelError,
    decode_cluster,
    decode_slices,
    decode_without_brokers,
    encode_cluster,
    encode_slices,
    encode_topics,
    joined_topics,
)
from state.stored.packed import PackedPartitions, pack
from state.stored.slices import Slice, slices_of

GOLDEN = Path(__file__).parents[2] / "golden"
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
    deletions_due=("t",),
    balance_due_ms=300_000,
    imbalance_seq=98,
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
    removed=(RemovedReplica(9, 6, ReplicaState.ReplicaDeletionStarted),),
    completed_epochs=(7, -1, 6),
    requested_epochs=(7, 5, 7),
    received_epochs=(7, 4, 6),
    lags=(ReplicaLag(), ReplicaLag(12_345, 12_395, 2**40), ReplicaLag(-1, 12_400, 7)),
    lost_logs=(1,),
    directories=("A", "", "B"),
)
TOPICS = [Topic("t", "id-of-t", TopicState.created, {"a": "b"}, (PARTITION,))]

SLICES = [
    Slice("sliced", "id", TopicState.deleting, {"a": "b"}, True, 2, 0, pack([PARTITION])),
    Slice("sliced", "id", TopicState.created, {}, False, 0, 1, pack([replace(PARTITION, partition=1)])),
]
PAGE = [*SLICES, *slices_of(TOPICS[0])]

# Fields in order. State is stored as arrays, so a position is a meaning.
BORN: dict[type[msgspec.Struct], str] = {
    Cluster: "shard shards seq clock_ms controller_id controller_epoch settings brokers config broker_config"
    " watermarks_due totals",
    Totals: "topics partitions replicas offline under_replicated under_min_isr at_min_isr not_preferred reassigning",
    Broker: "broker broker_epoch incarnation state rack listeners log_dirs last_contact_ms offline_log_dirs",
    RemovedReplica: "broker leader_epoch state",
    ReplicaLag: "caught_up_time_ms report_time_ms leader_end_offset",
    Topic: "topic topic_id state config partitions",
    Slice: "topic topic_id state config deletion_waits count first_partition partitions",
    PackedPartitions: "count body lengths replicas_each replicas moving leaders",
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


# Bytes that isrflow wrote. Every later release reads them.
def test_a_stored_cluster_part_is_read() -> None:
    assert decode_cluster((GOLDEN / "cluster.bin").read_bytes()) == CLUSTER


def test_a_stored_page_is_read() -> None:
    assert decode_slices((GOLDEN / "page.bin").read_bytes()) == PAGE


@pytest.mark.parametrize("lost", [0, 1])
def test_incomplete_slices_are_not_read_as_a_topic(lost: int) -> None:
    pages = [encode_slices([one]) for one in SLICES]
    assert [len(topic.partitions) for topic in joined_topics(reversed(pages))] == [2]
    with pytest.raises(CodecError, match="topic sliced"):
        joined_topics(page for nth, page in enumerate(pages) if nth != lost)


LEFT_OVER = SLICES[1]


@pytest.mark.parametrize(
    "slices",
    [
        [replace(SLICES[0], count=1), LEFT_OVER],
        [SLICES[0], replace(LEFT_OVER, topic_id="former")],
        [SLICES[0], replace(LEFT_OVER, partitions=pack([replace(PARTITION, partition=2)]))],
    ],
    ids=["of a longer topic", "of another topic", "of other partitions"],
)
def test_a_slice_that_does_not_belong_to_the_others_is_refused(slices: list[Slice]) -> None:
    with pytest.raises(CodecError, match="topic sliced has"):
        joined_topics([encode_slices(slices[::-1])])


@pytest.mark.parametrize("level", [FIRST_LEVEL, NEWEST_LEVEL])
def test_a_cluster_part_is_read_without_its_brokers(level: int) -> None:
    many = replace(CLUSTER, brokers={number: replace(BROKER, broker=number) for number in range(100)}, level=level)
    assert decode_without_brokers(encode_cluster(many)) == replace(decode_cluster(encode_cluster(many)), brokers={})
    with pytest.raises(CodecError):
        decode_without_brokers(encode_cluster(many)[:-1])


def test_what_is_written_is_read_back() -> None:
    assert decode_cluster(encode_cluster(CLUSTER)) == CLUSTER
    assert joined_topics([encode_topics(TOPICS)]) == TOPICS
    assert decode_slices(encode_slices(PAGE)) == PAGE


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


@pytest.mark.parametrize("rest", ["", "0090f0", "00", "009090", "00c1", "00a178", "0290"])
def test_bytes_that_are_not_a_state_are_refused(rest: str) -> None:
    with pytest.raises(CodecError, match="state cannot be read"):
        decode_slices(bytes([FIRST_LEVEL]) + bytes.fromhex(rest))


@pytest.mark.parametrize("body", [b"", b"\0\0\x90"])
def test_bytes_without_a_level_are_refused(body: bytes) -> None:
    with pytest.raises(CodecError, match="state cannot be read: it begins with"):
        decode_cluster(body)


def test_a_cluster_part_says_the_level_of_the_bus_and_a_newer_one_is_not_read() -> None:
    body = encode_cluster(replace(CLUSTER, level=NEWEST_LEVEL + 1))
    assert body[0] == NEWEST_LEVEL + 1
    for reading in (decode_cluster, decode_slices):
        with pytest.raises(LevelError, match=f"^the bus is at level {NEWEST_LEVEL + 1}, and this isrflow supports"):
            reading(body)
