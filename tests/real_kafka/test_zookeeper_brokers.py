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

from brokers.gateways.zk.messages import LEADER_AND_ISR, UPDATE_METADATA
from brokers.wire.errors import ErrorCode
from tests.real_kafka.traffic import PARTITIONS, Traffic
from tests.support.cluster_command import on_cluster
from tests.support.freezing import freeze_process
from tests.support.rules_engine import RulesEngine
from tests.support.waiting import TIMEOUT_S, wait_until
from tests.support.zookeeper_cluster import ZookeeperCluster, started

# On a busy machine everything that is waited for takes longer than the usual limit of a test.
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]
# ZooKeeper says when a broker is gone, so the engine's own sessions are long.
POLICY = {"broker_session_timeout_ms": 60_000, "auto_leader_rebalance_enable": False}
SAFE = {"min.insync.replicas": "2"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "kafka"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[RulesEngine]:
    """The rules on a bus, under which the cluster begins."""
    engine = RulesEngine()
    engine.start(tmp_path / "bus.db", **POLICY)
    yield engine
    engine.stop()


@pytest.fixture
def cluster(tmp_path: Path, folder: Path, engine: RulesEngine) -> Iterator[ZookeeperCluster]:
    """Three brokers, two gateways and a ZooKeeper, under the rules."""
    with started(folder, tmp_path / "bus.db", "--gateways", "2") as cluster:
        yield cluster


def status_of(folder: Path) -> tuple[int, dict[str, Any]]:
    code, said = on_cluster(folder, "status", "--format", "json")
    return code, json.loads(said.splitlines()[0])


def test_nothing_acknowledged_is_lost_whatever_fails_and_whichever_controller_leads(
    cluster: ZookeeperCluster, folder: Path, engine: RulesEngine, next_engine: RulesEngine, tmp_path: Path
) -> None:
    """One test, because starting the cluster takes longer than what is asked of it."""
    code, found = status_of(folder)
    assert (code, found["zookeeper"]["state"]) == (0, "running")
    assert sum(row["leads"] for row in found["gateways"]) == 1
    assert [row["decided"] for row in found["nodes"]] == ["active"] * 3

    size = f"--partitions {PARTITIONS} --replication-factor 3"
    cluster.tool("TopicCommand", f"--create --topic t {size} --config min.insync.replicas=2")
    cluster.create(NewTopic("t-whole", PARTITIONS, 3, config=SAFE))
    for topic in ("t", "t-whole"):
        cluster.agree(topic)
    traffic = Traffic(cluster.bootstrap, "t")
    traffic.goes_on()

    goes_on_through_failures(cluster, folder, traffic)
    engine.stop()
    assert on_cluster(folder, "hand-back")[0] == 0
    lives_by_itself(cluster, folder, traffic)
    next_engine.start(tmp_path / "next.db", **POLICY)
    cluster.bus.close()
    cluster = adopted(folder, tmp_path / "next.db", traffic)
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


def goes_on_through_failures(cluster: ZookeeperCluster, folder: Path, traffic: Traffic) -> None:
    """Kill a broker, stop another, and kill the gateway."""
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

    gateways_take_turns(cluster, traffic)
    zookeeper_comes_back(cluster, traffic)


def gateways_take_turns(cluster: ZookeeperCluster, traffic: Traffic) -> None:
    """Freeze the gateway that leads, and continue it when another one leads. Then kill that one."""
    first = cluster.leading_gateway()
    freeze_process(cluster.bus_path, first.pid)
    wait_until(lambda: cluster.controller() != first.voter.voter, "another gateway to be the controller")
    second = cluster.leading_gateway()
    traffic.goes_on()
    first.resume()
    cluster.create(NewTopic("u", 1, 3))
    cluster.agree("u")
    wait_until(lambda: "no longer leads" in first.log_file.read_text(), "the first gateway to hear of it")
    refused = dict.fromkeys((LEADER_AND_ISR, UPDATE_METADATA), ErrorCode.STALE_CONTROLLER_EPOCH)
    assert cluster.answers_to_a_stale_controller(1) == refused
    second.kill()
    wait_until(lambda: cluster.controller() == first.voter.voter, "the first gateway to lead again")
    second.start()
    second.wait_until_started()
    traffic.goes_on()


def zookeeper_comes_back(cluster: ZookeeperCluster, traffic: Traffic) -> None:
    """Kill ZooKeeper and start it again. Brokers serve meanwhile, and the gateway begins another term."""
    before = cluster.controller_epoch()
    cluster.zookeeper.kill()
    traffic.goes_on()
    cluster.zookeeper.start()
    cluster.zookeeper.wait_until_started()
    wait_until(lambda: cluster.controller_epoch() > before, "another term")
    cluster.wait_for_isr("t", 3)
    traffic.goes_on()


def lives_by_itself(cluster: ZookeeperCluster, folder: Path, traffic: Traffic) -> None:
    """Check that a stock controller goes on from what was left to it. Broker 2 stays killed."""
    wait_until(lambda: cluster.controller() in {1, 2, 3}, "a broker to become the controller")
    code, found = status_of(folder)
    assert (code, found["engine"], found["gateways"]) == (0, None, [])
    assert on_cluster(folder, "hand-back")[0] == 1
    traffic.goes_on()
    cluster.tool("TopicCommand", "--create --topic by-kafka --partitions 1 --replication-factor 2")
    cluster.broker(2).kill()
    wait_until(lambda: 2 not in {held[0] for held in cluster.stored("t").values()}, "another leader")
    traffic.goes_on()


def adopted(folder: Path, bus_path: Path, traffic: Traffic) -> ZookeeperCluster:
    """Take the cluster over, and check that the engine goes on from what a stock controller left to it.

    The gateway begins without broker 2, of which the engine has never heard. Then ``adopt`` starts that broker.
    """
    code, said = on_cluster(folder, "adopt", "--bus", str(bus_path))
    assert code == 0, said
    cluster = ZookeeperCluster(folder, bus_path)
    assert cluster.controller() in cluster.gateways
    assert cluster.decided("by-kafka").keys() == {0}
    traffic.goes_on()
    cluster.wait_for_isr("t", 3)
    wait_until(lambda: cluster.stored("t") == cluster.decided("t"), "the engine to know what there is")
    first, second = cluster.partitions("by-kafka")[0]["replicas"]
    cluster.reassign("by-kafka", (second, 6 - first - second))
    # Frozen for longer than its session with ZooKeeper.
    cluster.broker(3).pause()
    wait_until(lambda: not leads(cluster, 3), "another leader")
    traffic.goes_on()
    cluster.broker(3).resume()
    cluster.wait_for_isr("t", 3)
    traffic.goes_on()
    return cluster


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
