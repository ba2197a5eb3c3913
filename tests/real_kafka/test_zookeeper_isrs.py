"""Brokers of ``inter.broker.protocol.version`` 2.6 write ISRs into ZooKeeper, and the engine goes on from there."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from confluent_kafka.admin import NewTopic

from tests.real_kafka.traffic import PARTITIONS, Traffic
from tests.support.rules_engine import RulesEngine
from tests.support.waiting import wait_until
from tests.support.zookeeper_cluster import ZookeeperCluster, started

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]
POLICY = {"broker_session_timeout_ms": 60_000, "auto_leader_rebalance_enable": False}
SAFE = {"min.insync.replicas": "2"}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ZookeeperCluster]:
    """Brokers of 3.9.1 that speak as 2.6 did, under the rules."""
    engine = RulesEngine()
    engine.start(tmp_path / "bus.db", **POLICY)
    with started(tmp_path / "kafka", tmp_path / "bus.db", inter_broker_protocol_version="2.6") as cluster:
        yield cluster
    engine.stop()


def reasons(cluster: ZookeeperCluster) -> set[str]:
    """Name why ISRs changed so far."""
    decided = [msgspec.json.decode(one.body) for one in cluster.bus.decisions((0, -1), 1_000_000)]
    return {one["reason"] for one in decided if one["kind"] == "leader_and_isr"}


def members(cluster: ZookeeperCluster) -> set[int]:
    """Name the brokers that are in any ISR, as the engine decided it."""
    return {member for held in cluster.partitions("t").values() for member in held["isr"]}


def test_the_engine_hears_of_isrs_that_leaders_wrote_and_nothing_acknowledged_is_lost(
    cluster: ZookeeperCluster,
) -> None:
    cluster.create(NewTopic("t", PARTITIONS, 3, config=SAFE), NewTopic("t-whole", PARTITIONS, 3, config=SAFE))
    for topic in ("t", "t-whole"):
        cluster.agree(topic)
    traffic = Traffic(cluster.bootstrap, "t")
    traffic.goes_on()

    for number in (1, 2):
        cluster.broker(number).kill()
        wait_until(lambda: number not in members(cluster), "the ISRs to shrink")  # noqa: B023
        traffic.goes_on()
        cluster.restart(number)
        cluster.wait_for_isr("t", 3)
        traffic.goes_on()
    [gateway] = cluster.gateways.values()
    gateway.kill()
    cluster.broker(3).kill()
    # Nobody elects, but the leaders that live go on by themselves.
    wait_until(lambda: any(3 not in held[2] for held in cluster.stored("t").values()), "a leader to write its ISR")
    gateway.start()
    gateway.wait_until_started()
    wait_until(lambda: 3 not in members(cluster), "the engine to hear of it")
    traffic.goes_on()
    cluster.restart(3)
    cluster.wait_for_isr("t", 3)
    traffic.end()
    cluster.tool_agrees("t")
    assert {"ISR_SHRUNK", "ISR_EXPANDED"} <= reasons(cluster)
    wait_until(lambda: _agree(cluster), "ZooKeeper to hold what was decided")


def _agree(cluster: ZookeeperCluster) -> bool:
    """Say whether leaders, leader epochs and ISRs are the same. Versions go their own way."""
    stored, decided = cluster.stored("t"), cluster.decided("t")
    return {number: held[:3] for number, held in stored.items()} == {
        number: held[:3] for number, held in decided.items()
    }
