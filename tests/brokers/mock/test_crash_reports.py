"""The logs that a broker reports while their replicas follow no leader."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from brokers.mock.control.outbox import Outbox
from brokers.mock.log.directory import LogDirectory
from brokers.mock.log.log import LogConfig
from brokers.mock.metadata import Metadata
from brokers.mock.replicas.table import Replicas
from brokers.mock.settings import settings_of
from bus.embedded import EmbeddedBus
from state.decisions import Answer, LeaderAndIsr, LevelDecision, Rejected
from state.reason import Reason
from tests.brokers.mock.test_partition import PLACE, decided_leader
from tests.support.batches import batch

COMMON = {"seq": 1, "controller_epoch": 1, "time_ms": 0, "reason": Reason.LEVEL_RAISED}
BEAT = Answer(**COMMON, request_id="r", request="broker_heartbeat", error="NONE", message="", broker=1)
OF_BROKER = ("last_written_epoch", "log_end_offset", "high_watermark", "broker_epoch")


class Host:
    """The replicas of broker 1, whose log of t-0 has two records of epoch 0 and one of epoch 2; epoch 4 was begun."""

    def __init__(self, path: Path, level: int) -> None:
        self.bus = EmbeddedBus(path / "bus.db")
        directory = LogDirectory(path / "1")
        log = directory.open_log(PLACE, "id", LogConfig())
        for epoch in (0, 0, 2):
            log.append_as_leader(batch(b"v"), epoch)
        log.begin_epoch(4)
        log.close()
        directory.checkpoint_high_watermarks({PLACE: 1})
        settings = settings_of({"min.insync.replicas": 2})
        self.outbox = Outbox(1, self.bus, settings)
        self.metadata = Metadata()
        self.metadata.apply(LevelDecision(**COMMON, level=level))
        self.replicas = Replicas(1, LogDirectory(path / "1"), self.metadata, self.outbox, settings)
        self.replicas.set_broker_epoch(7)

    def begin(self, decision: LeaderAndIsr) -> None:
        self.metadata.apply(decision)
        self.replicas.begin()

    async def published(self) -> list[dict[str, Any]]:
        await self.outbox.flush()
        return [json.loads(entry.raw) for entry in self.bus.read(0, self.bus.last_seq())]

    async def logs(self) -> list[tuple[Any, ...]]:
        reported = [event for event in await self.published() if event["kind"] == "replica_log"]
        return [tuple(event[field] for field in OF_BROKER) for event in reported]


def played(path: Path, scene: Any, level: int = 2) -> None:
    async def run() -> None:
        host = Host(path, level)
        try:
            await scene(host)
        finally:
            await host.replicas.fetchers.stop()
            host.replicas.close()
            host.outbox.close()
            host.bus.close()

    asyncio.run(run())


LEADERLESS = decided_leader(-1, 5, isr=(), elr=(2,), last_known_elr=(1,))
GONE = replace(LEADERLESS, elr=())


def test_a_log_is_reported_before_its_replica_follows(tmp_path: Path) -> None:
    async def scene(host: Host) -> None:
        host.begin(decided_leader(2, 5, isr=(2,)))
        kinds = [event["kind"] for event in await host.published()]
        assert kinds[:2] == ["replica_log", "replica_report"]
        assert await host.logs() == [(2, 3, 1, 7)]
        [event] = [event for event in await host.published() if event["kind"] == "replica_log"]
        assert (event["topic_id"], event["directory"]) == ("id", str((tmp_path / "1").resolve()))

    played(tmp_path, scene)


@pytest.mark.parametrize(
    ("decision", "level"),
    [
        # Enough replicas are in sync to commit.
        (decided_leader(2, 5, isr=(2, 3)), 2),
        (decided_leader(2, 5, isr=(2,)), 1),
        (LEADERLESS, 1),
    ],
)
def test_a_log_that_cannot_matter_is_not_reported(tmp_path: Path, decision: LeaderAndIsr, level: int) -> None:
    async def scene(host: Host) -> None:
        host.begin(decision)
        assert await host.logs() == []

    played(tmp_path, scene, level)


def test_a_log_is_reported_once_and_again_when_no_replica_is_left_that_may_lead(tmp_path: Path) -> None:
    async def scene(host: Host) -> None:
        host.begin(LEADERLESS)
        assert len(await host.logs()) == 1
        host.replicas.apply(replace(LEADERLESS, partition_epoch=6))
        host.replicas.apply(replace(LEADERLESS, leader=2, leader_epoch=6, partition_epoch=7, isr=(2,)))
        assert len(await host.logs()) == 1
        host.replicas.apply(replace(GONE, leader_epoch=7, partition_epoch=8))
        assert len(await host.logs()) == 2

    played(tmp_path, scene)


def refused_as(host: Host, reason: Reason, field: str) -> Rejected:
    raw = next(e.raw for e in host.bus.read(0, host.bus.last_seq()) if b"replica_log" in e.raw)
    return Rejected(**COMMON | {"reason": reason}, field=field, message="", raw=raw.decode())


def test_a_report_that_was_refused_for_its_time_is_sent_again_while_there_is_no_leader(tmp_path: Path) -> None:
    async def scene(host: Host) -> None:
        host.begin(GONE)
        await host.logs()
        refused = refused_as(host, Reason.TIME_AHEAD, "time_ms")
        host.outbox.apply(refused)
        assert host.outbox.has_refused
        host.outbox.apply(BEAT)
        assert await host.logs() == [(2, 3, 1, 7)] * 2
        assert not host.outbox.has_refused
        host.outbox.apply(refused)
        host.metadata.apply(replace(GONE, leader=2, leader_epoch=6, partition_epoch=7, isr=(2,)))
        host.outbox.apply(BEAT)
        assert len(await host.logs()) == 2

    played(tmp_path, scene)


def test_a_report_that_was_refused_for_its_directory_is_not_sent_again(tmp_path: Path) -> None:
    async def scene(host: Host) -> None:
        host.begin(GONE)
        await host.logs()
        for _ in range(3):
            host.outbox.apply(refused_as(host, Reason.REQUEST_REFUSED, "directory"))
            assert not host.outbox.has_refused
            host.outbox.apply(BEAT)
        assert len(await host.logs()) == 1

    played(tmp_path, scene)


def test_a_log_is_reported_again_under_a_new_registration(tmp_path: Path) -> None:
    """The engine sends the decision again once the broker is active."""

    async def scene(host: Host) -> None:
        host.begin(GONE)
        await host.logs()
        host.replicas.set_broker_epoch(8)
        host.replicas.apply(GONE)
        assert await host.logs() == [(2, 3, 1, 7), (2, 3, 1, 8)]

    played(tmp_path, scene)
