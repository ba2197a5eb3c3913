"""Produce: append, and with acks=all wait for the high watermark that the engine decides."""

import asyncio
from typing import Any

from kafka.protocol.producer import ProduceRequest, ProduceResponse

from brokers.mock.apis.context import Context
from brokers.mock.replicas.partition import Partition
from brokers.wire.errors import ErrorCode, RefusedError
from brokers.wire.messages import Request, WireError, api
from state.events import TopicPartition

# Versions 0 to 2 are advertised and then refused, as Kafka does, because librdkafka needs to see them (KAFKA-18659).
API = api(ProduceRequest, ProduceResponse, (3, 12), min_advertised=0)
ALL, LEADER, NONE = -1, 1, 0
TIMEOUT_MS_MAX = 300_000


class _Appending:
    """One partition of a request, from its append to its answer."""

    __slots__ = ("base_offset", "error", "message", "partition", "place", "required", "start_offset", "term")

    def __init__(self, place: TopicPartition) -> None:
        self.place = place
        self.partition: Partition | None = None
        self.term = 0
        self.base_offset = -1
        self.start_offset = -1
        self.required = 0
        self.error = ErrorCode.NONE
        self.message: str | None = None

    def refuse(self, refused: RefusedError) -> None:
        self.error, self.message = refused.code, str(refused)


async def produce(context: Context, request: Request) -> Any | None:
    """Answer a Produce; with acks=0 there is no answer. All appends happen before the first wait."""
    body = request.body
    appendings = [
        _append(context, TopicPartition(topic.name, data.index), data.records, body.acks)
        for topic in body.topic_data
        for data in topic.partition_data
    ]
    if body.acks == ALL:
        await _replicated(context, appendings, body.timeout_ms)
    if body.acks != NONE:
        return _answer(request, appendings)
    if any(appending.error is not ErrorCode.NONE for appending in appendings):
        # The client expects no answer, so only a closed connection makes it look for the leader again.
        raise WireError("a produce with acks=0 failed")
    return None


def _append(context: Context, place: TopicPartition, records: Any, acks: int) -> _Appending:
    appending = _Appending(place)
    try:
        if acks not in (ALL, LEADER, NONE):
            raise RefusedError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks={acks}")
        partition = context.replicas.leader_of(place)
        minimum = _effective_min_isr(context, partition)
        if acks == ALL and len(partition.isr) < minimum:
            raise RefusedError(ErrorCode.NOT_ENOUGH_REPLICAS, f"{len(partition.isr)} in sync, {minimum} needed")
        appended = partition.append_as_leader(records)
    except RefusedError as refused:
        appending.refuse(refused)
        return appending
    context.replicas.appended(partition)
    appending.partition, appending.term = partition, partition.term
    appending.base_offset, appending.required = appended.base_offset, appended.last_offset + 1
    appending.start_offset = partition.log.log_start_offset
    return appending


def _effective_min_isr(context: Context, partition: Partition) -> int:
    """Return how many replicas must be in sync, never more than there are (``Partition.effectiveMinIsr``)."""
    return min(context.replicas.topics.min_insync_replicas(partition.place.topic), len(partition.replicas))


async def _replicated(context: Context, appendings: list[_Appending], timeout_ms: int) -> None:
    """Wait until every append is below the high watermark, has failed, or is out of time."""
    deadline = asyncio.get_running_loop().time() + min(max(timeout_ms, 0), TIMEOUT_MS_MAX) / 1000
    waiting = [a for a in appendings if a.partition is not None and not is_settled(context, a)]
    while waiting:
        changed = await context.purgatory.change({a.partition for a in waiting if a.partition is not None}, deadline)
        waiting = [a for a in waiting if not is_settled(context, a)]
        if not changed:
            for appending in waiting:
                appending.refuse(RefusedError(ErrorCode.REQUEST_TIMED_OUT))
            return


def is_settled(context: Context, appending: _Appending) -> bool:
    """Say whether the answer to an append is known (``Partition.checkEnoughReplicasReachOffset``)."""
    partition = appending.partition
    assert partition is not None
    if not partition.is_leader or partition.term != appending.term:
        # Only the next leader can say whether the records survive; here they may have been truncated.
        appending.refuse(RefusedError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        return True
    if partition.high_watermark < appending.required:
        return False
    minimum = _effective_min_isr(context, partition)
    if len(partition.isr) < minimum:
        refused = RefusedError(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, f"{minimum} needed in sync")
        appending.refuse(refused)
    return True


def _answer(request: Request, appendings: list[_Appending]) -> Any:
    topic_response = ProduceResponse.TopicProduceResponse
    by_topic: dict[str, list[Any]] = {}
    for appending in appendings:
        refused = appending.error is not ErrorCode.NONE
        by_topic.setdefault(appending.place.topic, []).append(
            topic_response.PartitionProduceResponse(
                version=request.version,
                index=appending.place.partition,
                error_code=int(appending.error),
                base_offset=-1 if refused else appending.base_offset,
                log_append_time_ms=-1,
                log_start_offset=-1 if refused else appending.start_offset,
                record_errors=[],
                error_message=appending.message,
            )
        )
    responses = [
        topic_response(version=request.version, name=name, partition_responses=partitions)
        for name, partitions in by_topic.items()
    ]
    return request.answer(responses=responses, throttle_time_ms=0)
