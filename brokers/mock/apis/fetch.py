"""Fetch: consumers read up to the high watermark, followers to the end of the log; both may wait for more."""

import asyncio
from typing import Any, NamedTuple

from kafka.protocol.consumer import FetchRequest, FetchResponse

from brokers.mock.apis.context import Context
from brokers.mock.replicas.partition import Partition
from brokers.wire.errors import ErrorCode, RefusedError
from brokers.wire.messages import Request, api
from state.events import TopicPartition

API = api(FetchRequest, FetchResponse, (4, 16))
CONSUMER = -1
FETCH_SESSION_ID_NOT_FOUND = 70


class _Wanted(NamedTuple):
    """What one partition of the request asks for; ``refused`` is set if its topic id is not known."""

    topic: str
    topic_id: Any
    fetch: Any
    refused: ErrorCode

    @property
    def place(self) -> TopicPartition:
        return TopicPartition(self.topic, self.fetch.partition)


class _Given(NamedTuple):
    """What one partition has at the moment."""

    error: ErrorCode
    records: bytes
    partition: Partition | None


async def fetch(context: Context, request: Request) -> Any:
    """Answer a Fetch once ``min_bytes`` are there, a partition has an error, or the time is up.

    The broker opens no fetch sessions, so every request names all its partitions (KIP-227 allows that).
    """
    body = request.body
    if body.session_id and body.session_epoch > 0:
        return request.answer(error_code=FETCH_SESSION_ID_NOT_FOUND, responses=[])
    replica, replica_epoch = _replica(request)
    wanted = _wanted(context, request)
    deadline = (
        asyncio.get_running_loop().time() + min(max(body.max_wait_ms, 0), context.settings.fetch_max_wait_ms) / 1000
    )
    if replica != CONSUMER:
        wanted = _note_fetches(context, wanted, replica, replica_epoch)
    while True:
        given = _read(context, wanted, replica, min(body.max_bytes, context.settings.fetch_max_bytes))
        enough = sum(len(g.records) for g in given) >= body.min_bytes
        if enough or any(g.error is not ErrorCode.NONE for g in given):
            break
        partitions = {g.partition for g in given if g.partition is not None}
        if not partitions or not await context.purgatory.change(partitions, deadline):
            given = _read(context, wanted, replica, min(body.max_bytes, context.settings.fetch_max_bytes))
            break
    return _answer(request, wanted, given)


def _replica(request: Request) -> tuple[int, int]:
    """Return the id and broker epoch of the follower that asks (KIP-903). The id is -1 for a consumer."""
    if request.version >= 15:
        state = request.body.replica_state
        return (CONSUMER, -1) if state is None else (state.replica_id, state.replica_epoch)
    return request.body.replica_id, -1


def _wanted(context: Context, request: Request) -> list[_Wanted]:
    wanted = []
    for topic in request.body.topics:
        name, topic_id = (None, topic.topic_id) if request.version >= 13 else (topic.topic, None)
        try:
            named, refused = context.topic_named(name, topic_id), ErrorCode.NONE
        except RefusedError as error:
            named, refused = "", error.code
        wanted += [_Wanted(named, topic_id, asked, refused) for asked in topic.partitions]
    return wanted


def _note_fetches(context: Context, wanted: list[_Wanted], replica: int, replica_epoch: int) -> list[_Wanted]:
    """Note a follower's fetch if it is in the leader's epoch and inside the leader's log. Ignore any other."""
    noted = []
    for want in wanted:
        refused = want.refused
        if refused is ErrorCode.NONE:
            try:
                partition = context.replicas.leader_of(want.place, want.fetch.current_leader_epoch)
                log = partition.log
                inside = log.log_start_offset <= want.fetch.fetch_offset <= log.log_end_offset
                if inside and want.fetch.current_leader_epoch == partition.leader_epoch:
                    context.replicas.fetched(partition, replica, want.fetch.fetch_offset, replica_epoch)
            except RefusedError as error:
                refused = error.code
        noted.append(want._replace(refused=refused))
    return noted


def _read(context: Context, wanted: list[_Wanted], replica: int, max_bytes: int) -> list[_Given]:
    given, remaining = [], max_bytes
    for want in wanted:
        one = _read_one(context, want, replica, remaining)
        remaining -= len(one.records)
        given.append(one)
    return given


def _read_one(context: Context, want: _Wanted, replica: int, remaining: int) -> _Given:
    if want.refused is not ErrorCode.NONE:
        return _Given(want.refused, b"", None)
    try:
        partition = context.replicas.leader_of(want.place, want.fetch.current_leader_epoch)
        upper = partition.high_watermark if replica == CONSUMER else partition.log.log_end_offset
        budget = min(want.fetch.partition_max_bytes, remaining)
        records = partition.log.read(want.fetch.fetch_offset, budget, upper) if budget > 0 else b""
        return _Given(ErrorCode.NONE, records, partition)
    except RefusedError as refused:
        return _Given(refused.code, b"", None)


def _answer(request: Request, wanted: list[_Wanted], given: list[_Given]) -> Any:
    topic_response = FetchResponse.FetchableTopicResponse
    by_topic: dict[Any, list[Any]] = {}
    for want, give in zip(wanted, given, strict=True):
        partition = give.partition
        high_watermark = partition.high_watermark if partition is not None else -1
        by_topic.setdefault((want.topic, want.topic_id), []).append(
            topic_response.PartitionData(
                version=request.version,
                partition_index=want.fetch.partition,
                error_code=int(give.error),
                high_watermark=high_watermark,
                last_stable_offset=high_watermark,
                log_start_offset=partition.log.log_start_offset if partition is not None else -1,
                aborted_transactions=None,
                preferred_read_replica=-1,
                records=give.records,
            )
        )
    responses = [
        topic_response(version=request.version, topic=topic, topic_id=topic_id, partitions=partitions)
        for (topic, topic_id), partitions in by_topic.items()
    ]
    return request.answer(throttle_time_ms=0, error_code=0, session_id=0, responses=responses)
