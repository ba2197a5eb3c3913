"""The requests of a follower to its leader."""

from collections.abc import Sequence
from typing import Any

from kafka.protocol.consumer import FetchRequest, ListOffsetsRequest, OffsetForLeaderEpochRequest, OffsetSpec

from brokers.mock.metadata import uuid_of
from brokers.mock.replicas.partition import Partition
from brokers.mock.settings import Settings
from state.events import TopicPartition

FETCH_VERSION = 15
OFFSET_FOR_LEADER_EPOCH_VERSION = 4
LIST_OFFSETS_VERSION = 6


def epoch_ends_request(broker: int, epochs: Sequence[tuple[TopicPartition, int, int]]) -> Any:
    """Return a request that asks where epochs end.

    ``epochs`` has (partition, the leader epoch it is followed in, the epoch to ask about).
    """
    topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    topics = [
        topic(
            topic=place.topic,
            partitions=[
                topic.OffsetForLeaderPartition(
                    partition=place.partition, current_leader_epoch=current, leader_epoch=epoch
                )
            ],
        )
        for place, current, epoch in epochs
    ]
    return OffsetForLeaderEpochRequest(version=OFFSET_FOR_LEADER_EPOCH_VERSION, replica_id=broker, topics=topics)


def fetch_request(broker: int, broker_epoch: int, partitions: Sequence[Partition], settings: Settings) -> Any:
    """Return a request for what follows each partition's log end."""
    topic = FetchRequest.FetchTopic
    topics = [
        topic(
            topic_id=uuid_of(partition.topic_id),
            partitions=[
                topic.FetchPartition(
                    partition=partition.place.partition,
                    current_leader_epoch=partition.leader_epoch,
                    fetch_offset=partition.log.log_end_offset,
                    last_fetched_epoch=-1,
                    log_start_offset=partition.log.log_start_offset,
                    partition_max_bytes=settings.replica_fetch_max_bytes,
                )
            ],
        )
        for partition in partitions
    ]
    return FetchRequest(
        version=FETCH_VERSION,
        replica_state=FetchRequest.ReplicaState(replica_id=broker, replica_epoch=broker_epoch),
        max_wait_ms=settings.replica_fetch_wait_max_ms,
        min_bytes=settings.replica_fetch_min_bytes,
        max_bytes=settings.replica_fetch_response_max_bytes,
        topics=topics,
        forgotten_topics_data=[],
    )


def offset_request(broker: int, place: TopicPartition, leader_epoch: int, spec: OffsetSpec) -> Any:
    """Return a request that asks where the leader's log starts or ends."""
    topic = ListOffsetsRequest.ListOffsetsTopic
    partition = topic.ListOffsetsPartition(
        partition_index=place.partition, current_leader_epoch=leader_epoch, timestamp=int(spec)
    )
    topics = [topic(name=place.topic, partitions=[partition])]
    return ListOffsetsRequest(version=LIST_OFFSETS_VERSION, replica_id=broker, isolation_level=0, topics=topics)
