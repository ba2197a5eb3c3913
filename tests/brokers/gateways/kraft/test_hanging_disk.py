"""A gateway whose disk hangs without an error."""

import asyncio
from pathlib import Path

import pytest

from brokers.wire.errors import ErrorCode
from tests.brokers.gateways.kraft.storages import BEGINNING, commit_next, follow, opened, topic, whole
from tests.support.decided_bus import DecidedBus
from tests.support.gateway_in_process import InProcessQuorum, heartbeat
from tests.support.hanging_disk import HangingDisk
from tests.support.waiting import TIMEOUT_S, wait_until

# The gateways' own timeout; the engine's is two seconds.
QUICK = {"controller_quorum_fetch_timeout_ms": 250, "gateway_heartbeat_interval_ms": 50}


def test_another_gateway_leads_while_the_disk_of_the_leading_one_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quorum = InProcessQuorum(tmp_path, 2, **QUICK)
    client = quorum.client(100)
    try:
        epochs = quorum.join(client, 1)
        end = client.fetch(0, 1)["HighWatermark"]
        disk = HangingDisk(monkeypatch, tmp_path / "gateway-100")
        try:
            quorum.bus.publish([topic("t")])

            def has_changed() -> bool:
                # The broker goes on fetching, so that it is heard.
                client.fetch(0, 1, replica=1)
                return quorum.state.voter == 101

            wait_until(has_changed, "the other to lead")
            wait_until(
                lambda: client.fetch(end, 1, 1)["ErrorCode"] == ErrorCode.BROKER_NOT_AVAILABLE,
                "the first to tell that it cannot answer",
            )
            beat = client.ask("BrokerHeartbeat", **heartbeat(1, epochs[1]))
            assert beat["ErrorCode"] == ErrorCode.NOT_CONTROLLER
            assert quorum.gateways[100].gateway.measures().is_blind
        finally:
            disk.release()
        epoch = quorum.state.quorum_epoch
        wait_until(
            lambda: client.fetch(0, epoch)["ErrorCode"] == ErrorCode.NOT_LEADER_OR_FOLLOWER,
            "the first to hear of it",
        )
        wait_until(lambda: not quorum.gateways[100].gateway.measures().is_blind, "the first to read again")
    finally:
        client.close()
        quorum.stop()


def test_a_gateway_that_asks_for_the_files_may_leave_before_the_disk_answers(
    decided: DecidedBus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decided.take(BEGINNING)
    storage = opened(tmp_path / "log", decided.bus)
    follow(storage, decided.bus)
    decided.take([b"no event"])
    follow(storage, decided.bus)
    decided.take([topic("t")])
    disk = HangingDisk(monkeypatch, tmp_path / "log")

    async def asked() -> None:
        asking = asyncio.create_task(storage.files())
        await asyncio.to_thread(disk.is_waited_for.wait, TIMEOUT_S)
        asking.cancel()
        assert isinstance((await asyncio.gather(asking, return_exceptions=True))[0], asyncio.CancelledError)
        committing = asyncio.create_task(commit_next(storage, decided.bus))
        disk.release()
        async with asyncio.timeout(TIMEOUT_S):
            await committing
            listed = await storage.files()
        assert dict(listed) == {path.name: path.stat().st_size for path in (tmp_path / "log").glob("0*")}

    asyncio.run(asked())
    storage.close()
    complete = opened(tmp_path / "complete", decided.bus)
    follow(complete, decided.bus)
    again = opened(tmp_path / "log", decided.bus)
    assert whole(again) == whole(complete)
    again.close()
    complete.close()
