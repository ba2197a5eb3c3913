"""ListOffsets and OffsetForLeaderEpoch: the offsets of a log by time or by leader epoch."""

import asyncio

import structlog

from brokers.mock import messages
from brokers.mock.apis.context import Context
from brokers.mock.replicas.partition import Partition
from brokers.wire.catalogue import Request, Values
from brokers.wire.errors import ErrorCode, RefusedError
from state.events import TopicPartition
from state.ids import NO_EPOCH

logger = structlog.get_logger()

CONSUMER = -1
UNKNOWN = -1
# The version of ListOffsets from which answers have leader epochs.
LEADER_EPOCHS_FROM = 4


async def list_offsets(context: Context, request: Request) -> Values:
    """Answer a ListOffsets with the log's start or end, its newest record, or the first record at or after a time."""
    topics = []
    for topic in request.values["Topics"]:
        partitions = []
        for wanted in topic["Partitions"]:
            partitions.append(_listed(context, request, topic["Name"], wanted))
            # A search by time may take a while, so other tasks run in between.
            await asyncio.sleep(0)
        topics.append({"Name": topic["Name"], "Partitions": partitions})
    return {"Topics": topics}


def _listed(context: Context, request: Request, topic: str, wanted: Values) -> Values:
    number = wanted["PartitionIndex"]
    error, timestamp, offset, epoch = ErrorCode.NONE, UNKNOWN, UNKNOWN, NO_EPOCH
    try:
        partition = context.replicas.leader_of(TopicPartition(topic, number), wanted["CurrentLeaderEpoch"])
        is_consumer = request.values["ReplicaId"] == CONSUMER
        upper = partition.high_watermark if is_consumer else partition.log.log_end_offset
        timestamp, offset, epoch = _found(partition, wanted["Timestamp"], upper)
    except RefusedError as refused:
        error = refused.code
        if error == ErrorCode.CORRUPT_MESSAGE:
            logger.warning("records cannot be read", topic=topic, partition=number, why=str(refused))
    answer = {"PartitionIndex": number, "ErrorCode": error, "Timestamp": timestamp, "Offset": offset}
    return answer | ({"LeaderEpoch": epoch} if request.version >= LEADER_EPOCHS_FROM else {})


def _found(partition: Partition, timestamp: int, upper: int) -> tuple[int, int, int]:
    log = partition.log
    match timestamp:
        case messages.LATEST:
            return UNKNOWN, upper, partition.leader_epoch
        case messages.EARLIEST:
            entries = log.epochs.entries
            return UNKNOWN, log.log_start_offset, entries[0].epoch if entries else NO_EPOCH
        case messages.MAX_TIMESTAMP:
            found = log.find_timestamp(log.max_timestamp, upper) if log.max_timestamp >= 0 else None
        case _ if timestamp >= 0:
            found = log.find_timestamp(timestamp, upper)
        case _:
            raise RefusedError(ErrorCode.UNSUPPORTED_VERSION, f"timestamp {timestamp}")
    return found if found is not None else (UNKNOWN, UNKNOWN, NO_EPOCH)


async def offset_for_leader_epoch(context: Context, request: Request) -> Values:
    """Answer an OffsetForLeaderEpoch (KIP-101, KIP-279, KIP-320)."""
    return {
        "Topics": [
            {
                "Topic": topic["Topic"],
                "Partitions": [_ended(context, topic["Topic"], wanted) for wanted in topic["Partitions"]],
            }
            for topic in request.values["Topics"]
        ]
    }


def _ended(context: Context, topic: str, wanted: Values) -> Values:
    error, epoch, end_offset = ErrorCode.NONE, UNKNOWN, UNKNOWN
    try:
        place = TopicPartition(topic, wanted["Partition"])
        partition = context.replicas.leader_of(place, wanted["CurrentLeaderEpoch"])
        epoch, end_offset = partition.log.end_offset_for_epoch(wanted["LeaderEpoch"])
    except RefusedError as refused:
        error = refused.code
    return {"ErrorCode": error, "Partition": wanted["Partition"], "LeaderEpoch": epoch, "EndOffset": end_offset}
