"""ListOffsets and OffsetForLeaderEpoch: where a log starts and ends, by time or by leader epoch."""

import asyncio
from typing import Any

import structlog
from kafka.protocol.consumer import (
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetSpec,
)

from brokers.mock.apis.context import Context
from brokers.mock.replicas.partition import Partition
from brokers.wire.errors import ErrorCode, RefusedError
from brokers.wire.messages import Request, api
from state.events import TopicPartition
from state.ids import NO_EPOCH

logger = structlog.get_logger()

LIST_OFFSETS = api(ListOffsetsRequest, ListOffsetsResponse, (1, 7))
OFFSET_FOR_LEADER_EPOCH = api(OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse, (2, 4))
CONSUMER = -1
UNKNOWN = -1


async def list_offsets(context: Context, request: Request) -> Any:
    """Answer a ListOffsets with the log's start or end, the newest record, or the first one at or after a time."""
    topic_response = ListOffsetsResponse.ListOffsetsTopicResponse
    topics = []
    for topic in request.body.topics:
        partitions = []
        for wanted in topic.partitions:
            partitions.append(_listed(context, request, topic.name, wanted))
            # A search by time may take a while, so others have their turn in between.
            await asyncio.sleep(0)
        topics.append(topic_response(version=request.version, name=topic.name, partitions=partitions))
    return request.answer(throttle_time_ms=0, topics=topics)


def _listed(context: Context, request: Request, topic: str, wanted: Any) -> Any:
    error, timestamp, offset, epoch = ErrorCode.NONE, UNKNOWN, UNKNOWN, NO_EPOCH
    try:
        place = TopicPartition(topic, wanted.partition_index)
        partition = context.replicas.leader_of(place, wanted.current_leader_epoch)
        upper = partition.high_watermark if request.body.replica_id == CONSUMER else partition.log.log_end_offset
        timestamp, offset, epoch = _found(partition, wanted.timestamp, upper)
    except RefusedError as refused:
        error = refused.code
        if error == ErrorCode.CORRUPT_MESSAGE:
            logger.warning("records cannot be read", topic=topic, partition=wanted.partition_index, why=str(refused))
    return ListOffsetsResponse.ListOffsetsTopicResponse.ListOffsetsPartitionResponse(
        version=request.version,
        partition_index=wanted.partition_index,
        error_code=int(error),
        timestamp=timestamp,
        offset=offset,
        leader_epoch=epoch,
    )


def _found(partition: Partition, timestamp: int, upper: int) -> tuple[int, int, int]:
    log = partition.log
    match timestamp:
        case OffsetSpec.LATEST:
            return UNKNOWN, upper, partition.leader_epoch
        case OffsetSpec.EARLIEST:
            entries = log.epochs.entries
            return UNKNOWN, log.log_start_offset, entries[0].epoch if entries else NO_EPOCH
        case OffsetSpec.MAX_TIMESTAMP:
            found = log.find_timestamp(log.max_timestamp, upper) if log.max_timestamp >= 0 else None
        case _ if timestamp >= 0:
            found = log.find_timestamp(timestamp, upper)
        case _:
            raise RefusedError(ErrorCode.UNSUPPORTED_VERSION, f"timestamp {timestamp}")
    return found if found is not None else (UNKNOWN, UNKNOWN, NO_EPOCH)


async def offset_for_leader_epoch(context: Context, request: Request) -> Any:
    """Answer an OffsetForLeaderEpoch (KIP-101, KIP-279, KIP-320)."""
    topic_result = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult
    topics = []
    for topic in request.body.topics:
        partitions = [_ended(context, request, topic.topic, wanted) for wanted in topic.partitions]
        topics.append(topic_result(version=request.version, topic=topic.topic, partitions=partitions))
    return request.answer(throttle_time_ms=0, topics=topics)


def _ended(context: Context, request: Request, topic: str, wanted: Any) -> Any:
    error, epoch, end_offset = ErrorCode.NONE, UNKNOWN, UNKNOWN
    try:
        place = TopicPartition(topic, wanted.partition)
        partition = context.replicas.leader_of(place, wanted.current_leader_epoch)
        epoch, end_offset = partition.log.end_offset_for_epoch(wanted.leader_epoch)
    except RefusedError as refused:
        error = refused.code
    return OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult.EpochEndOffset(
        version=request.version,
        error_code=int(error),
        partition=wanted.partition,
        leader_epoch=epoch,
        end_offset=end_offset,
    )
