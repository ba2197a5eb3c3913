"""The requests of a follower to its leader."""

from collections.abc import Sequence

from brokers.mock.messages import FETCH, LIST_OFFSETS, OFFSET_FOR_LEADER_EPOCH, Asked
from brokers.mock.replicas.partition import Partition
from brokers.mock.settings import Settings
from state.events import TopicPartition

FETCH_VERSION = 15
OFFSET_FOR_LEADER_EPOCH_VERSION = 4
LIST_OFFSETS_VERSION = 6


def epoch_ends_request(broker: int, epochs: Sequence[tuple[TopicPartition, int, int]]) -> Asked:
    """Return a request for the ends of epochs.

    ``epochs`` has (partition, the leader epoch in which it is followed, the epoch to ask about).
    """
    topics = [
        {
            "Topic": place.topic,
            "Partitions": [{"Partition": place.partition, "CurrentLeaderEpoch": current, "LeaderEpoch": epoch}],
        }
        for place, current, epoch in epochs
    ]
    values = {"ReplicaId": broker, "Topics": topics}
    return Asked(OFFSET_FOR_LEADER_EPOCH, OFFSET_FOR_LEADER_EPOCH_VERSION, values)


def fetch_request(broker: int, broker_epoch: int, partitions: Sequence[Partition], settings: Settings) -> Asked:
    """Return a request for the records after each partition's log end."""
    topics = [
        {
            "TopicId": partition.topic_id,
            "Partitions": [
                {
                    "Partition": partition.place.partition,
                    "CurrentLeaderEpoch": partition.leader_epoch,
                    "FetchOffset": partition.log.log_end_offset,
                    "LogStartOffset": partition.log.log_start_offset,
                    "PartitionMaxBytes": settings.replica_fetch_max_bytes,
                }
            ],
        }
        for partition in partitions
    ]
    values = {
        "ReplicaState": {"ReplicaId": broker, "ReplicaEpoch": broker_epoch},
        "MaxWaitMs": settings.replica_fetch_wait_max_ms,
        "MinBytes": settings.replica_fetch_min_bytes,
        "MaxBytes": settings.replica_fetch_response_max_bytes,
        "Topics": topics,
    }
    return Asked(FETCH, FETCH_VERSION, values)


def offset_request(broker: int, place: TopicPartition, leader_epoch: int, timestamp: int) -> Asked:
    """Return a request for the start or the end of the leader's log."""
    partition = {"PartitionIndex": place.partition, "CurrentLeaderEpoch": leader_epoch, "Timestamp": timestamp}
    topics = [{"Name": place.topic, "Partitions": [partition]}]
    return Asked(LIST_OFFSETS, LIST_OFFSETS_VERSION, {"ReplicaId": broker, "Topics": topics})
