"""Requests on their way to one broker: what happens when it is slow, closes its connection, or refuses."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from brokers.gateways.zk.channels import channel
from brokers.gateways.zk.channels.requests.answers import StaleControllerError
from brokers.gateways.zk.channels.requests.building import Outgoing, requests_of
from brokers.wire.errors import ErrorCode
from state.registration import Listener
from tests.brokers.gateways.zk.channels.door import Door
from tests.brokers.gateways.zk.channels.way import cancelled, run, until, way_to
from tests.brokers.gateways.zk.decided import broker, led, topic


def test_a_closed_connection_leads_to_the_same_requests_again(tmp_path: Path) -> None:
    async def work() -> None:
        door = Door({}, None)
        async with way_to(door, tmp_path) as way:
            way.hear(broker(2), led(), topic())
            way.published.set()
            task = asyncio.create_task(way.channel.run())
            await until(lambda: way.reports() == [(0, "leader")])
            await until(lambda: len(door.requests) == 5)
            first = ["UpdateMetadata", "LeaderAndIsr"]
            assert door.names == [*first, *first, "UpdateMetadata"]
            await cancelled([task])

    run(work())


def test_a_broker_that_is_asked_again_says_which_replicas_it_lost(tmp_path: Path) -> None:
    async def work() -> None:
        lost = {"TopicName": "", "PartitionIndex": 0, "ErrorCode": ErrorCode.KAFKA_STORAGE_ERROR}
        answer = {"Topics": [{"TopicId": topic().topic_id, "PartitionErrors": [lost]}]}
        door = Door({}, {}, {}, answer)
        async with way_to(door, tmp_path) as way:
            way.hear(led(), topic())
            way.published.set()
            task = asyncio.create_task(way.channel.run())
            await until(lambda: door.names == ["LeaderAndIsr", "UpdateMetadata"])
            way.channel.ask_again()
            await until(lambda: way.reports() == [(0, "leader"), (0, "error")])
            # All later metadata shows this replica as offline too. The brokers of the other two are offline.
            way.hear(led(1, 0, 1, isr=(1, 2)))
            await until(lambda: offline(door) == [1, 2, 3])
            await cancelled([task])

    run(work())


def test_a_broker_whose_host_has_no_possible_name_is_tried_again(tmp_path: Path) -> None:
    async def work() -> None:
        door = Door()
        async with way_to(door, tmp_path) as way:
            right = way.channel.broker
            # What an empty variable in the settings of a broker leads to.
            way.channel.know(replace(right, listeners=(Listener("PLAINTEXT", "kafka-1..svc", 9_092),)))
            way.hear(led(), topic())
            way.published.set()
            task = asyncio.create_task(way.channel.run())
            await asyncio.wait([task], timeout=0.2)
            assert not task.done()
            way.channel.know(right)
            await until(lambda: door.names == ["UpdateMetadata", "LeaderAndIsr", "UpdateMetadata"])
            await cancelled([task])

    run(work())


def test_a_request_that_cannot_be_written_is_an_error_until_a_newer_decision_replaces_it(tmp_path: Path) -> None:
    async def work() -> None:
        door = Door()
        async with way_to(door, tmp_path) as way:
            way.hear(led(partition_epoch=1 << 31), topic())
            way.published.set()
            with capture_logs() as lines:
                task = asyncio.create_task(way.channel.run())
                await until(lambda: any(one["log_level"] == "error" for one in lines))
            assert "PartitionEpoch" in next(one["why"] for one in lines if one["log_level"] == "error")
            way.hear(led(leader_epoch=1, partition_epoch=1))
            await until(lambda: "LeaderAndIsr" in door.names)
            await cancelled([task])

    run(work())


def test_requests_are_made_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answered: list[int] = []

    async def work() -> None:
        door = Door()

        def counted(*given: Any) -> Iterator[Outgoing]:
            for request in requests_of(*given):
                answered.append(len(door.requests))
                yield request

        monkeypatch.setattr(channel, "requests_of", counted)
        async with way_to(door, tmp_path) as way:
            way.hear(*[led(partition=number, is_new=True) for number in range(4_001)], topic())
            way.published.set()
            task = asyncio.create_task(way.channel.run())
            await until(lambda: len(door.requests) == 6)
            await cancelled([task])

    run(work())
    # All together they would take as much memory as all partitions, for each broker.
    assert answered == list(range(6))


def offline(door: Door) -> list[int]:
    """Name the offline replicas that the newest metadata shows."""
    topics = [one.values["TopicStates"] for one in door.requests if one.name == "UpdateMetadata"][-1]
    return list(topics[0]["PartitionStates"][0]["OfflineReplicas"]) if topics else []


def test_nothing_is_sent_before_zookeeper_holds_it(tmp_path: Path) -> None:
    async def work() -> None:
        door = Door()
        async with way_to(door, tmp_path) as way:
            task = asyncio.create_task(way.channel.run())
            way.hear(led(), topic())
            for _ in range(5):
                await asyncio.sleep(0)
            way.hear(led(2, 1, 1))
            assert door.requests == []
            way.published.set()
            await until(lambda: way.reports() == [(0, "follower")])
            epochs = [
                state["LeaderEpoch"]
                for request in door.requests
                for told in request.values["TopicStates"]
                for state in told["PartitionStates"]
            ]
            assert set(epochs) == {1}, "only the newest is told"
            await cancelled([task])

    run(work())


def test_a_broker_that_obeys_a_later_controller_ends_it(tmp_path: Path) -> None:
    async def work() -> None:
        async with way_to(Door({"ErrorCode": 11}), tmp_path) as way:
            way.hear(led(), topic())
            way.published.set()
            with pytest.raises(StaleControllerError):
                await way.channel.run()

    run(work())


def test_a_broker_that_started_again_is_told_no_more(tmp_path: Path) -> None:
    async def work() -> None:
        door = Door({"ErrorCode": 77})
        async with way_to(door, tmp_path) as way:
            way.hear(led(), topic())
            way.published.set()
            await way.channel.run()
            assert len(door.requests) == 1

    run(work())


def test_a_broker_that_listens_elsewhere_is_told_there(tmp_path: Path) -> None:
    async def work() -> None:
        former, door = Door(), Door()
        async with way_to(former, tmp_path) as way:
            way.published.set()
            task = asyncio.create_task(way.channel.run())
            way.hear(led(), topic())
            await until(lambda: len(former.requests) == 2)
            server = await asyncio.start_server(door.serve, "127.0.0.1", 0)
            port = server.sockets[0].getsockname()[1]
            moved = replace(way.channel.broker, listeners=(Listener("PLAINTEXT", "127.0.0.1", port),))
            way.channel.know(moved)
            way.hear(moved, led(2, 1, 1))
            await until(lambda: door.names == ["UpdateMetadata", "LeaderAndIsr", "UpdateMetadata"])
            assert len(former.requests) == 2
            await cancelled([task])
            server.close()

    run(work())


def test_a_request_to_the_former_address_is_repeated_at_the_new_one(tmp_path: Path) -> None:
    async def work() -> None:
        async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            asked.set()
            await asyncio.Event().wait()

        asked, door = asyncio.Event(), Door()
        async with way_to(door, tmp_path) as way:
            reached = way.channel.broker
            silent = await asyncio.start_server(never, "127.0.0.1", 0)
            port = silent.sockets[0].getsockname()[1]
            way.channel.know(replace(reached, listeners=(Listener("PLAINTEXT", "127.0.0.1", port),)))
            way.published.set()
            task = asyncio.create_task(way.channel.run())
            way.hear(led(), topic())
            await asked.wait()
            way.channel.know(reached)
            await until(lambda: "LeaderAndIsr" in door.names)
            await cancelled([task])
            silent.close()

    run(work())
