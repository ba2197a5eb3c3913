"""Fetch: consumers read up to the high watermark, followers to the end of the log; both may wait for more."""

import asyncio
from typing import NamedTuple

from brokers.mock.apis.context import Context
from brokers.mock.replicas.partition import Partition
from brokers.wire.catalogue import Request, Values
from brokers.wire.errors import ErrorCode, RefusedError
from state.events import TopicPartition

CONSUMER = -1
FETCH_SESSION_ID_NOT_FOUND = 70


class _Wanted(NamedTuple):
    """One partition of a request; ``refused`` is set if its topic id is unknown."""

    topic: str
    topic_id: str
    fetch: Values
    refused: ErrorCode

    @property
    def place(self) -> TopicPartition:
        return TopicPartition(self.topic, self.fetch["Partition"])


class _Given(NamedTuple):
    """What one partition gives at the moment."""

    error: ErrorCode
    records: bytes
    partition: Partition | None


async def fetch(context: Context, request: Request) -> Values:
    """Answer a Fetch once its minimum of bytes is there, a partition has an error, or the time is up.

    The broker opens no fetch sessions, so every request names all its partitions (KIP-227 allows that).
    """
    asked = request.values
    if asked["SessionId"] and asked["SessionEpoch"] > 0:
        return {"ErrorCode": FETCH_SESSION_ID_NOT_FOUND}
    replica, replica_epoch = _replica(request)
    wanted = _wanted(context, request)
    wait_ms = min(max(asked["MaxWaitMs"], 0), context.settings.fetch_max_wait_ms)
    deadline = asyncio.get_running_loop().time() + wait_ms / 1000
    max_bytes = min(asked["MaxBytes"], context.settings.fetch_max_bytes)
    if replica != CONSUMER:
        wanted = _note_fetches(context, wanted, replica, replica_epoch)
    while True:
        given = _read(context, wanted, replica, max_bytes)
        enough = sum(len(g.records) for g in given) >= asked["MinBytes"]
        if enough or any(g.error is not ErrorCode.NONE for g in given):
            break
        waited = [g.partition.waiters for g in given if g.partition is not None]
        if not waited or not await context.purgatory.change(waited, deadline):
            given = _read(context, wanted, replica, max_bytes)
            break
    return _answer(wanted, given)


def _replica(request: Request) -> tuple[int, int]:
    """Return the follower's id and broker epoch (KIP-903). The id is -1 for a consumer."""
    if request.version >= 15:
        state = request.values["ReplicaState"]
        return state["ReplicaId"], state["ReplicaEpoch"]
    return request.values["ReplicaId"], -1


def _wanted(context: Context, request: Request) -> list[_Wanted]:
    wanted = []
    for topic in request.values["Topics"]:
        topic_id = topic["TopicId"]
        try:
            named, refused = context.topic_named(topic["Topic"], topic_id), ErrorCode.NONE
        except RefusedError as error:
            named, refused = "", error.code
        wanted += [_Wanted(named, topic_id, asked, refused) for asked in topic["Partitions"]]
    return wanted


def _note_fetches(context: Context, wanted: list[_Wanted], replica: int, replica_epoch: int) -> list[_Wanted]:
    """Note a follower's fetches in the leader's epoch and inside the leader's log, and ignore all others."""
    noted = []
    for want in wanted:
        refused = want.refused
        if refused is ErrorCode.NONE:
            try:
                partition = context.replicas.leader_of(want.place, want.fetch["CurrentLeaderEpoch"])
                log = partition.log
                inside = log.log_start_offset <= want.fetch["FetchOffset"] <= log.log_end_offset
                if inside and want.fetch["CurrentLeaderEpoch"] == partition.leader_epoch:
                    context.replicas.fetched(partition, replica, want.fetch["FetchOffset"], replica_epoch)
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
        partition = context.replicas.leader_of(want.place, want.fetch["CurrentLeaderEpoch"])
        upper = partition.high_watermark if replica == CONSUMER else partition.log.log_end_offset
        budget = min(want.fetch["PartitionMaxBytes"], remaining)
        records = partition.log.read(want.fetch["FetchOffset"], budget, upper) if budget > 0 else b""
        return _Given(ErrorCode.NONE, records, partition)
    except RefusedError as refused:
        return _Given(refused.code, b"", None)


def _answer(wanted: list[_Wanted], given: list[_Given]) -> Values:
    by_topic: dict[tuple[str, str], list[Values]] = {}
    for want, give in zip(wanted, given, strict=True):
        partition = give.partition
        high_watermark = partition.high_watermark if partition is not None else -1
        answer = {
            "PartitionIndex": want.fetch["Partition"],
            "ErrorCode": give.error,
            "HighWatermark": high_watermark,
            "LastStableOffset": high_watermark,
            "LogStartOffset": partition.log.log_start_offset if partition is not None else -1,
            "AbortedTransactions": None,
            "Records": give.records,
        }
        by_topic.setdefault((want.topic, want.topic_id), []).append(answer)
    return {
        "Responses": [
            {"Topic": topic, "TopicId": topic_id, "Partitions": partitions}
            for (topic, topic_id), partitions in by_topic.items()
        ]
    }
