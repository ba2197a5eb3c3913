"""Unmodified brokers of Kafka 3.9.1 in ZooKeeper mode obey the engine, and nothing that was acknowledged is lost."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from tests.real_kafka.traffic import PARTITIONS, Traffic
from tests.real_kafka.zookeeper_steps import (
    CLIENT_TIMEOUT_MS,
    POLICY,
    goes_on_through_failures,
    is_handed_back_and_adopted,
    status_of,
)
from tests.support.cluster_command import on_cluster
from tests.support.rules_engine import RulesEngine
from tests.support.waiting import TIMEOUT_S, wait_until
from tests.support.zookeeper_cluster import ZookeeperCluster, started

# On a busy machine everything that is waited for takes longer than the usual limit of a test.
pytestmark = [pytest.mark.zookeeper, pytest.mark.timeout(900)]
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


def test_nothing_acknowledged_is_lost_whatever_fails_and_whichever_controller_leads(
    cluster: ZookeeperCluster, folder: Path, engine: RulesEngine, next_engine: RulesEngine, tmp_path: Path
) -> None:
    """One test, because starting the cluster takes longer than the checks."""
    code, found = status_of(folder)
    assert (code, found["zookeeper"]["state"]) == (0, "running")
    assert sum(row["leads"] for row in found["gateways"]) == 1
    assert [row["decided"] for row in found["nodes"]] == ["active"] * 3

    size = f"--partitions {PARTITIONS} --replication-factor 3"
    cluster.tool("TopicCommand", f"--create --topic t {size} --config min.insync.replicas=2")
    cluster.create(NewTopic("t-whole", PARTITIONS, 3, config=SAFE))
    for topic in ("t", "t-whole"):
        cluster.agree(topic)
    traffic = Traffic(cluster.bootstrap, "t", CLIENT_TIMEOUT_MS)
    traffic.goes_on()

    goes_on_through_failures(cluster, folder, traffic)
    engine.stop()
    cluster = is_handed_back_and_adopted(cluster, folder, next_engine, tmp_path / "next.db", traffic)
    alter_config(cluster, "t", "retention.ms", "86400000")
    wait_until(lambda: config_of(cluster, "t") == SAFE | {"retention.ms": "86400000"}, "the engine to hear of it")

    cluster.tool("TopicCommand", "--delete --topic t")
    wait_until(lambda: "t" not in {held["topic"] for held in cluster.view()["topics"]}, "the topic to be deleted")
    cluster.tool("TopicCommand", "--create --topic t --partitions 1 --replication-factor 3")
    cluster.tool_agrees("t")
    cluster.wait_for_isr("t", 3)

    assert on_cluster(folder, "down", "--delete")[0] == 0
    assert not folder.exists()


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
