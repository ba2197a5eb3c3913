"""A mock broker's fetchers, with a leader that the test plays."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from brokers.mock.log.log import Log, LogConfig
from brokers.mock.messages import FETCH, Asked
from brokers.mock.metadata import Metadata
from brokers.mock.replicas.connection import Connection
from brokers.mock.replicas.fetchers import Fetchers
from brokers.mock.replicas.partition import Partition
from brokers.mock.settings import Settings
from brokers.wire.catalogue import Values
from brokers.wire.errors import ErrorCode, RefusedError
from state.decisions import BrokerDecision
from state.events import TopicPartition
from state.reason import Reason
from state.registration import Listener
from tests.brokers.mock.test_partition import decided_leader
from tests.support.batches import batch

FOLLOWER, LEADER = 1, 2
Leader = Callable[[Asked], Values]


class _Played:
    """A connection to a leader that the test plays."""

    def __init__(self, leader: Leader) -> None:
        self._leader = leader

    async def ask(self, asked: Asked, timeout_ms: int) -> Values:
        await asyncio.sleep(0)
        return self._leader(asked)

    def close(self) -> None:
        pass


def followed(directory: Path, number: int) -> Partition:
    """Make a partition that follows the leader, with an empty log."""
    name = f"t-{number}"
    partition = Partition(TopicPartition("t", number), "id", FOLLOWER, Log(directory / name, LogConfig(), False))
    partition.make_follower(decided_leader(LEADER, 1), 0)
    return partition


def fetchers_of(leader: Leader, monkeypatch: pytest.MonkeyPatch) -> Fetchers:
    """Make fetchers whose connections all lead to ``leader``."""

    async def opened(*_: Any) -> _Played:
        return _Played(leader)

    monkeypatch.setattr(Connection, "open", opened)
    metadata = Metadata()
    said = {"seq": 1, "controller_epoch": 1, "time_ms": 0, "reason": Reason.BROKER_REGISTERED}
    listener = Listener(name="PLAINTEXT", host="127.0.0.1", port=1)
    known = {"broker": LEADER, "broker_epoch": 5, "incarnation": "first", "rack": None, "listeners": (listener,)}
    metadata.apply(BrokerDecision(**said, **known, state="active"))
    return Fetchers(FOLLOWER, metadata, Settings(), lambda partition: None)


def answer_to_fetch(*partitions: Values) -> Values:
    responses = [{"TopicId": "id", "Partitions": list(partitions)}] if partitions else []
    return {"ErrorCode": 0, "Responses": responses}


def out_of_range(number: int) -> Values:
    return {"PartitionIndex": number, "ErrorCode": ErrorCode.OFFSET_OUT_OF_RANGE, "HighWatermark": 0}


def out_of_its_range(request: Asked, asked: list[Any], topics: list[Values]) -> Values:
    """Answer as a leader for whom the follower's offset is out of range, and whose own offsets are in ``topics``."""
    asked.append(request)
    return answer_to_fetch(out_of_range(0)) if request.api_key == FETCH else {"Topics": topics}


def records(number: int, data: bytes) -> Values:
    return {"PartitionIndex": number, "ErrorCode": 0, "HighWatermark": 0, "Records": data}


async def until(true: Callable[[], bool]) -> None:
    """Wait at most 10 s."""
    async with asyncio.timeout(10):
        while not true():
            await asyncio.sleep(0.001)


def test_a_running_fetcher_takes_a_new_broker_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    epochs: list[int] = []

    def leader(request: Asked) -> Values:
        assert request.api_key == FETCH
        epochs.append(request.values["ReplicaState"]["ReplicaEpoch"])
        return answer_to_fetch()

    async def scene() -> None:
        fetchers = fetchers_of(leader, monkeypatch)
        fetchers.set_broker_epoch(7)
        fetchers.add(followed(tmp_path, 0))
        await until(lambda: epochs[-1:] == [7])
        fetchers.set_broker_epoch(8)
        await until(lambda: epochs[-1:] == [8])
        await fetchers.stop()

    asyncio.run(scene())


def test_a_partition_may_be_added_while_an_offset_is_out_of_range(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Adding it closes the connection over which the fetcher wants to ask where the leader's log ends."""
    fetched: list[int] = []

    async def scene() -> None:
        def leader(request: Asked) -> Values:
            assert request.api_key == FETCH
            first = not fetched
            fetched.append(len(request.values["Topics"]))
            if not first:
                return answer_to_fetch()
            fetchers.add(followed(tmp_path, 1))
            return answer_to_fetch(out_of_range(0))

        fetchers = fetchers_of(leader, monkeypatch)
        fetchers.add(followed(tmp_path, 0))
        await until(lambda: 2 in fetched or bool(fetchers.failed()))
        assert fetchers.failed() == []
        await fetchers.stop()

    asyncio.run(scene())


def test_a_partition_that_is_led_meanwhile_keeps_its_leader_epoch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty log asks its leader nothing. Cutting it would drop the epoch that this broker has begun."""

    async def scene() -> None:
        connects, may_connect = asyncio.Event(), asyncio.Event()
        asked: list[int] = []

        def leader(request: Asked) -> Values:
            asked.append(len(request.values["Topics"]))
            return answer_to_fetch()

        fetchers = fetchers_of(leader, monkeypatch)

        async def opened(*_: Any) -> _Played:
            connects.set()
            await may_connect.wait()
            return _Played(leader)

        monkeypatch.setattr(Connection, "open", opened)
        led, other = followed(tmp_path, 0), followed(tmp_path, 1)
        fetchers.add(led)
        fetchers.add(other)
        await connects.wait()
        fetchers.remove(led)
        led.make_leader(decided_leader(FOLLOWER, 2), 0, 0)
        may_connect.set()
        await until(lambda: asked == [1] or len(asked) > 1)
        assert led.log.epochs.latest == 2
        await fetchers.stop()

    asyncio.run(scene())


def test_a_fetcher_outlives_a_log_that_cannot_be_cut_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The partition rests, and is cut at the next try."""
    cuts: list[int] = []

    def leader(request: Asked) -> Values:
        if request.api_key == FETCH:
            return answer_to_fetch()
        ended = {"Partition": 0, "ErrorCode": 0, "LeaderEpoch": 0, "EndOffset": 1}
        return {"Topics": [{"Topic": "t", "Partitions": [ended]}]}

    def cut(log: Log, offset: int) -> None:
        cuts.append(offset)
        if len(cuts) == 1:
            raise RefusedError(ErrorCode.KAFKA_STORAGE_ERROR, "Too many open files")
        truncate(log, offset)

    async def scene() -> None:
        partition = followed(tmp_path, 0)
        for value in (b"both", b"ours"):
            partition.log.append_as_leader(batch(value), 0)
        fetchers = fetchers_of(leader, monkeypatch)
        fetchers.add(partition)
        await until(lambda: partition.log.log_end_offset == 1 or bool(fetchers.failed()))
        assert (cuts, fetchers.failed()) == ([1, 1], [])
        await fetchers.stop()

    truncate = Log.truncate_to
    monkeypatch.setattr(Log, "truncate_to", cut)
    asyncio.run(scene())


def test_an_answer_without_the_offset_asked_for_is_an_error_of_the_leader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    async def scene() -> None:
        fetchers = fetchers_of(lambda request: out_of_its_range(request, asked, topics=[]), monkeypatch)
        fetchers.add(followed(tmp_path, 0))
        await until(lambda: len(asked) > 2 or bool(fetchers.failed()))
        assert fetchers.failed() == []
        await fetchers.stop()

    asyncio.run(scene())


def test_a_log_stays_where_a_leader_names_no_offset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    told = {"PartitionIndex": 0, "ErrorCode": 0, "Timestamp": -1, "Offset": -1, "LeaderEpoch": -1}
    topic = {"Name": "t", "Partitions": [told]}

    async def scene() -> None:
        fetchers = fetchers_of(lambda request: out_of_its_range(request, asked, topics=[topic]), monkeypatch)
        partition = followed(tmp_path, 0)
        fetchers.add(partition)
        await until(lambda: len(asked) > 3 or bool(fetchers.failed()))
        assert (fetchers.failed(), partition.log.log_start_offset, partition.log.log_end_offset) == ([], 0, 0)
        await fetchers.stop()

    asyncio.run(scene())


def test_a_response_may_hold_a_batch_as_large_as_a_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader sends a batch that is larger than what was asked for, because it took it."""
    limits: list[int] = []

    async def scene() -> None:
        fetchers = fetchers_of(lambda request: answer_to_fetch(), monkeypatch)

        async def opened(host: str, port: int, client_id: str, timeout_ms: int, limit: int) -> _Played:
            limits.append(limit)
            return _Played(lambda request: answer_to_fetch())

        monkeypatch.setattr(Connection, "open", opened)
        fetchers.add(followed(tmp_path, 0))
        await until(lambda: bool(limits))
        await fetchers.stop()

    asyncio.run(scene())
    settings = Settings()
    assert limits[0] > settings.socket_request_max_bytes + settings.replica_fetch_response_max_bytes


def test_partitions_that_got_records_come_last_in_the_next_fetch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A leader fills its response in the order of the request, so the last ones would get nothing for ever."""
    requested: list[list[int]] = []

    async def scene() -> None:
        def leader(request: Asked) -> Values:
            requested.append([topic["Partitions"][0]["Partition"] for topic in request.values["Topics"]])
            return answer_to_fetch(*([records(0, batch(b"x"))] if len(requested) == 1 else []))

        fetchers = fetchers_of(leader, monkeypatch)
        for number in range(3):
            fetchers.add(followed(tmp_path, number))
        await until(lambda: len(requested) > 1)
        await fetchers.stop()

    asyncio.run(scene())
    assert requested[:2] == [[0, 1, 2], [1, 2, 0]]
