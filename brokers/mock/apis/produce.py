"""Produce: append, and for acks=all wait until the engine's high watermark covers the records."""

import asyncio

from brokers.mock.apis.context import Context
from brokers.mock.replicas.partition import Partition
from brokers.wire.catalogue import Request, Values
from brokers.wire.errors import ErrorCode, RefusedError
from brokers.wire.messages import WireError
from state.events import TopicPartition

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


async def produce(context: Context, request: Request) -> Values | None:
    """Answer a Produce; with acks=0 there is no answer. All appends happen before the first wait."""
    asked = request.values
    acks = asked["Acks"]
    appendings = [
        _append(context, TopicPartition(topic["Name"], data["Index"]), data["Records"], acks)
        for topic in asked["TopicData"]
        for data in topic["PartitionData"]
    ]
    if acks == ALL:
        await _replicated(context, appendings, asked["TimeoutMs"])
    if acks != NONE:
        return _answer(appendings)
    if any(appending.error is not ErrorCode.NONE for appending in appendings):
        # The client expects no answer, so only a closed connection makes it look for the leader again.
        raise WireError("a produce with acks=0 failed")
    return None


def _append(context: Context, place: TopicPartition, records: bytes | None, acks: int) -> _Appending:
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
    context.replicas.log_end_changed(partition)
    appending.partition, appending.term = partition, partition.term
    appending.base_offset, appending.required = appended.base_offset, appended.last_offset + 1
    appending.start_offset = partition.log.log_start_offset
    return appending


def _effective_min_isr(context: Context, partition: Partition) -> int:
    """Return how many replicas must be in sync, at most all of them (``Partition.effectiveMinIsr``)."""
    return min(context.replicas.topics.min_insync_replicas(partition.place.topic), len(partition.replicas))


async def _replicated(context: Context, appendings: list[_Appending], timeout_ms: int) -> None:
    """Wait until each append is below the high watermark, has failed, or is out of time."""
    deadline = asyncio.get_running_loop().time() + min(max(timeout_ms, 0), TIMEOUT_MS_MAX) / 1000
    waiting = [a for a in appendings if a.partition is not None and not is_settled(context, a)]
    while waiting:
        waited = [a.partition.waiters for a in waiting if a.partition is not None]
        changed = await context.purgatory.change(waited, deadline)
        waiting = [a for a in waiting if not is_settled(context, a)]
        if not changed:
            for appending in waiting:
                appending.refuse(RefusedError(ErrorCode.REQUEST_TIMED_OUT))
            return


def is_settled(context: Context, appending: _Appending) -> bool:
    """Return whether the answer to an append is known (``Partition.checkEnoughReplicasReachOffset``)."""
    partition = appending.partition
    assert partition is not None
    if not partition.is_leader or partition.term != appending.term:
        # Only the next leader knows whether the records survive. Here they may have been truncated.
        appending.refuse(RefusedError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        return True
    if partition.high_watermark < appending.required:
        return False
    minimum = _effective_min_isr(context, partition)
    if len(partition.isr) < minimum:
        refused = RefusedError(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, f"{minimum} needed in sync")
        appending.refuse(refused)
    return True


def _answer(appendings: list[_Appending]) -> Values:
    by_topic: dict[str, list[Values]] = {}
    for appending in appendings:
        refused = appending.error is not ErrorCode.NONE
        answer = {
            "Index": appending.place.partition,
            "ErrorCode": appending.error,
            "BaseOffset": -1 if refused else appending.base_offset,
            "LogStartOffset": -1 if refused else appending.start_offset,
            "ErrorMessage": appending.message,
        }
        by_topic.setdefault(appending.place.topic, []).append(answer)
    return {"Responses": [{"Name": name, "PartitionResponses": answers} for name, answers in by_topic.items()]}
