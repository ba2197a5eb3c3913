"""Unmodified brokers of Kafka 3.9.1 in ZooKeeper mode obey the engine, and nothing that was acknowledged is lost."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from brokers.launch.kafka.cluster import KafkaCluster
from cli.cluster.led_cluster import LedCluster
from tests.real_kafka.traffic import PARTITIONS, Traffic
from tests.support.cluster_command import on_cluster
from tests.support.real_cluster import OVERRIDES
from tests.support.rules_engine import RulesEngine
from tests.support.waiting import TIMEOUT_S, wait_until
from tests.support.zookeeper_cluster import ZookeeperCluster

# On a busy machine everything that is waited for takes longer than the usual limit of a test.
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]
# ZooKeeper says when a broker is gone, so the engine's own sessions are long.
POLICY = {"broker_session_timeout_ms": 60_000, "auto_leader_rebalance_enable": False}
SAFE = {"min.insync.replicas": "2"}


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder whose cluster is gone after the test."""
    folder = tmp_path / "kafka"
    yield folder
    if (folder / "cluster.json").exists():
        led = LedCluster.open(KafkaCluster.open(folder))
        assert led is not None
        led.kill()


@pytest.fixture
def cluster(tmp_path: Path, folder: Path) -> Iterator[ZookeeperCluster]:
    """Three brokers, a gateway and a ZooKeeper, under the rules."""
    engine = RulesEngine()
    engine.start(tmp_path / "bus.db", **POLICY)
    sets = [part for key, value in OVERRIDES.items() for part in ("--set", f"{key}={value}")]
    places = ("--bus", str(tmp_path / "bus.db"), "--heap", "384m")
    try:
        code, said = on_cluster(folder, "up", "--kafka", "3.9.1", "--zookeeper", *places, *sets)
        assert code == 0, said
        assert "3 nodes of Kafka 3.9.1" in said
        cluster = ZookeeperCluster(folder, tmp_path / "bus.db")
        yield cluster
        cluster.bus.close()
    finally:
        engine.stop()


def status_of(folder: Path) -> tuple[int, dict[str, Any]]:
    code, said = on_cluster(folder, "status", "--format", "json")
    return code, json.loads(said.splitlines()[0])


def test_a_killed_leader_is_replaced_and_comes_back(cluster: ZookeeperCluster, folder: Path) -> None:
    """One test, because starting the cluster takes longer than what is asked of it."""
    code, found = status_of(folder)
    assert (code, found["zookeeper"]["state"], found["gateways"][0]["leads"]) == (0, "running", True)
    assert [row["decided"] for row in found["nodes"]] == ["active"] * 3

    size = f"--partitions {PARTITIONS} --replication-factor 3"
    cluster.tool("TopicCommand", f"--create --topic t {size} --config min.insync.replicas=2")
    cluster.create(NewTopic("t-whole", PARTITIONS, 3, config=SAFE))
    for topic in ("t", "t-whole"):
        cluster.agree(topic)
    traffic = Traffic(cluster.bootstrap, "t")
    traffic.goes_on()

    cluster.broker(1).kill()
    wait_until(lambda: cluster.states()[1] == "fenced", "the dead broker to be fenced")
    wait_until(lambda: not leads(cluster, 1), "another leader")
    traffic.goes_on()
    assert status_of(folder)[0] == 3
    cluster.restart(1)
    cluster.wait_for_isr("t", 3)

    assert cluster.broker(2).stop()
    wait_until(lambda: not leads(cluster, 2), "another leader")
    traffic.goes_on()
    cluster.restart(2)
    cluster.wait_for_isr("t", 3)

    # Brokers go on without their controller. The next start of the gateway continues.
    cluster.gateway.kill()
    cluster.gateway.start()
    cluster.gateway.wait_until_started()
    traffic.goes_on()
    traffic.end()

    cluster.tool_agrees("t")
    wait_until(lambda: cluster.stored("t") == cluster.decided("t"), "ZooKeeper to hold what was decided")
    alter_config(cluster, "t", "retention.ms", "86400000")
    wait_until(lambda: config_of(cluster, "t") == SAFE | {"retention.ms": "86400000"}, "the engine to hear of it")

    cluster.tool("TopicCommand", "--delete --topic t")
    wait_until(lambda: "t" not in {held["topic"] for held in cluster.view()["topics"]}, "the topic to be deleted")
    cluster.tool("TopicCommand", "--create --topic t --partitions 1 --replication-factor 3")
    cluster.tool_agrees("t")
    cluster.wait_for_isr("t", 3)

    assert on_cluster(folder, "down", "--delete") == (0, "")
    assert not folder.exists()


def leads(cluster: ZookeeperCluster, broker: int) -> bool:
    return broker in {held["leader"] for held in cluster.partitions("t").values()}


def alter_config(cluster: ZookeeperCluster, topic: str, name: str, value: str) -> None:
    """Change a setting as an admin's client does. In ZooKeeper mode a broker does it by itself."""
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    for done in admin.incremental_alter_configs([resource]).values():
        done.result(TIMEOUT_S)


def config_of(cluster: ZookeeperCluster, topic: str) -> dict[str, str]:
    [found] = [held["config"] for held in cluster.view()["topics"] if held["topic"] == topic]
    return dict(found)
