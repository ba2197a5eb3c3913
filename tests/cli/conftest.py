"""A small cluster's bus, made by hand: three brokers, one of them fenced, and two topics."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bus.embedded import EmbeddedBus
from bus.interface import Decided, Page
from cli.commands import command
from state.broker import Broker, BrokerState
from state.cluster import Cluster
from state.partition import Partition, PartitionState, ReplicaState, Topic, TopicState
from state.stored.codec import encode_cluster, encode_topics
from tests.cli.worked_cluster import started

Isrflow = Callable[..., Result]


def broker(number: int, state: BrokerState) -> Broker:
    return Broker(number, number, f"incarnation-{number}", state, "r1" if number == 1 else None, (), (), 1_000)


def partition(number: int, leader: int, isr: tuple[int, ...]) -> Partition:
    online = PartitionState.OnlinePartition if leader >= 0 else PartitionState.OfflinePartition
    states = tuple(ReplicaState.OnlineReplica for _ in range(3))
    return Partition(number, online, (1, 2, 3), states, isr, leader, 4, 7, high_watermark=42)


def topic(name: str, *partitions: Partition) -> Topic:
    return Topic(name, f"id-of-{name}", TopicState.created, {"min.insync.replicas": "2"}, partitions)


def decision(seq: int, index: int) -> Decided:
    kind = ("leader_and_isr", "high_watermark", "answer")[index]
    body: dict[str, object] = {"kind": kind, "seq": seq, "index": index, "time_ms": 1_000, "reason": "REQUEST_DONE"}
    body |= {"topic": "orders"} if seq < 4 else {}
    return Decided(seq, index, json.dumps(body).encode())


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith("ISRFLOW_") and name != "ISRFLOW_REWRITE":
            monkeypatch.delenv(name)


@pytest.fixture
def bus(tmp_path: Path) -> EmbeddedBus:
    made = EmbeddedBus(tmp_path / "data" / "bus.db")
    made.publish([json.dumps({"kind": "delete_topic", "time_ms": n, "topic": "t"}).encode() for n in range(5)])
    claim = made.claim("test", {}, 1_000)
    brokers = {n: broker(n, BrokerState.active if n < 3 else BrokerState.fenced) for n in (1, 2, 3)}
    cluster = Cluster(seq=6, clock_ms=1_000, controller_epoch=1, brokers=brokers)
    pages = [
        Page(0, -1, encode_cluster(cluster)),
        Page(0, 3, encode_topics([topic("orders", partition(0, 1, (1, 2, 3)), partition(1, 2, (1, 2)))])),
        Page(1, 0, encode_topics([topic("audit", partition(0, -1, (3,)))])),
    ]
    decided = [decision(seq, index) for seq in range(1, 6) for index in range(3)]
    made.commit(claim.controller_epoch, 6, decided, pages)
    return made


@pytest.fixture
def isrflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Isrflow:
    """Call a command in its own directory, where the default bus is the fixture's."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str, text: str | bytes | None = None) -> Result:
        return CliRunner().invoke(command, arguments, input=text, prog_name="isrflow")

    return call


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[EmbeddedBus]:
    """The bus of a small cluster that the rules decide in a thread."""
    engine = started(tmp_path)
    bus = EmbeddedBus(tmp_path / "data" / "bus.db")
    yield bus
    bus.close()
    engine.stop()
