"""A gateway's connection to a real ZooKeeper is cut: its term goes on, and ZooKeeper holds each decision once."""

import asyncio
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec import structs

from brokers.gateways.zk.gateway import Gateway
from brokers.launch.kafka.zookeeper import ZookeeperProcess
from bus.image import view_of_image
from tests.support.relay import Relay, relay
from tests.support.rules_engine import RulesEngine
from tests.support.waiting import TIMEOUT_S, wait_until
from tests.support.znode_cluster import PATIENT, ZnodeCluster

pytestmark = [pytest.mark.zookeeper, pytest.mark.timeout(600)]
STATE = "/brokers/topics/t/partitions/0/state"
QUIET_S = 0.5
# A gateway looks by itself once in ten minutes.
SETTINGS = structs.replace(PATIENT, zookeeper_session_timeout_ms=60_000, broker_heartbeat_interval_ms=600_000)


@pytest.fixture
def cluster(zookeeper: ZookeeperProcess, tmp_path: Path) -> Iterator[ZnodeCluster]:
    cluster = ZnodeCluster(zookeeper.address, uuid.uuid4().hex, tmp_path / "bus.db")
    cluster.put_topic("t", {0: [1, 2]})
    engine = RulesEngine()
    engine.start(tmp_path / "bus.db", broker_session_timeout_ms=600_000, auto_leader_rebalance_enable=False)
    yield cluster
    engine.stop()
    cluster.close()


@contextmanager
def led_through(cluster: ZnodeCluster, line: Relay) -> Iterator[None]:
    """Run a gateway whose way to ZooKeeper is ``line``, and which leads."""
    cluster.identity = structs.replace(cluster.identity, zookeeper=f"{line.address}/{cluster.root.partition('/')[2]}")
    cluster.adopt()
    loop = asyncio.new_event_loop()
    gateway: list[Gateway] = []

    async def run() -> None:
        gateway.append(Gateway(cluster.identity, SETTINGS, cluster.bus))
        await gateway[0].run()

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),))
    thread.start()
    try:
        wait_until(lambda: gateway and gateway[0].leads, "the gateway to lead")
        yield
    finally:
        loop.call_soon_threadsafe(gateway[0].stop)
        thread.join(TIMEOUT_S)
        loop.close()


def move(cluster: ZnodeCluster, *replicas: int) -> None:
    """Change the order of the replicas, which is one write of the partition's znode."""
    cluster.ask("alter_reassignment", topic="t", partition=0, replicas=replicas)


def partition_epochs(cluster: ZnodeCluster) -> tuple[int, int]:
    """Return the partition epoch that is decided, and the one in ZooKeeper, which each write raises."""
    return cluster.decided()["t-0"][3], cluster.client.get(STATE)[1].version


def wait_until_stored(cluster: ZnodeCluster) -> None:
    def is_stored() -> bool:
        decided, stored = partition_epochs(cluster)
        return decided == stored

    wait_until(is_stored, "the decision to be in ZooKeeper")


def test_decisions_whose_answers_are_lost_are_written_once(cluster: ZnodeCluster) -> None:
    with relay(cluster.root.partition("/")[0]) as line, led_through(cluster, line):
        epoch = cluster.get("/controller_epoch")
        for replicas in ([2, 1], [1, 2], [2, 1]):
            wait_until(lambda: line.silent_s > QUIET_S, "the gateway to have looked at everything")
            line.loses_answers.set()
            asked = line.asked
            move(cluster, *replicas)
            wait_until(lambda: line.asked > asked, "the gateway to write")  # noqa: B023
            line.cut()
            line.loses_answers.clear()
            line.is_cut.clear()
            wait_until_stored(cluster)
        move(cluster, 1, 2)
        wait_until_stored(cluster)
        assert cluster.get("/controller_epoch") == epoch


def test_what_happens_while_the_connection_is_cut_is_done_afterwards(cluster: ZnodeCluster) -> None:
    with relay(cluster.root.partition("/")[0]) as line, led_through(cluster, line):
        epoch = cluster.get("/controller_epoch")
        line.cut()
        move(cluster, 2, 1)
        cluster.put_broker(3, 9_003)
        line.is_cut.clear()
        wait_until_stored(cluster)
        wait_until(lambda: 3 in brokers(cluster), "the new broker to be registered")
        assert cluster.get("/controller_epoch") == epoch


def brokers(cluster: ZnodeCluster) -> set[int]:
    return {held["broker"] for held in view_of_image(cluster.bus.image())["brokers"]}
