"""Brokers in ZooKeeper mode while the engine is away for long, while replicas move, and with settings of their own."""

import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic
from msgspec.structs import replace

from brokers.launch.kafka.tools import CONFIGS
from brokers.launch.ports import free_ports
from bus.image import read_image
from tests.real_kafka.traffic import PARTITIONS, Traffic
from tests.real_kafka.zookeeper_steps import HALF, moves_go_on_when_a_broker_comes_back
from tests.support.clients import ConfluentSender, lost_records, read_all
from tests.support.cluster_command import on_cluster
from tests.support.rules_engine import RulesEngine
from tests.support.waiting import TIMEOUT_S, wait_until
from tests.support.zookeeper_cluster import ZookeeperCluster, started

pytestmark = [pytest.mark.zookeeper, pytest.mark.timeout(900)]
SESSION_S = 10
POLICY = {"broker_session_timeout_ms": SESSION_S * 1000, "auto_leader_rebalance_enable": False}
QUOTA = "producer_byte_rate=1024000.0"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[RulesEngine]:
    """The rules on a bus, under which the cluster begins."""
    engine = RulesEngine()
    engine.start(tmp_path / "bus.db", **POLICY)
    yield engine
    engine.stop()


@pytest.fixture
def cluster(tmp_path: Path, engine: RulesEngine) -> Iterator[ZookeeperCluster]:
    with started(tmp_path / "kafka", tmp_path / "bus.db", "--gateways", "2") as cluster:
        yield cluster


def test_nothing_acknowledged_is_lost_without_an_engine_or_while_replicas_move(
    cluster: ZookeeperCluster, engine: RulesEngine, next_engine: RulesEngine, tmp_path: Path
) -> None:
    cluster.tool("TopicCommand", f"--create --topic t --replica-assignment {','.join(['1:2', '2:1'] * HALF)}")
    cluster.create(NewTopic("t-whole", PARTITIONS, 3, config={"min.insync.replicas": "2"}))
    for topic in ("t", "t-whole"):
        cluster.agree(topic)
    traffic = Traffic(cluster.bootstrap, "t")
    traffic.goes_on()

    engine.stop()
    without_engine(cluster, traffic)
    next_engine.start(tmp_path / "bus.db", **POLICY)
    wait_until(lambda: 1 not in leaders(cluster), "leaders other than the broker that died meanwhile")
    traffic.goes_on()
    cluster.restart(1)
    cluster.wait_for_isr("t", 2)
    cluster.wait_for_isr("t-whole", 3)

    moves_go_on_when_a_broker_comes_back(cluster, traffic)
    a_directory_fails(cluster, traffic)
    settings_are_the_brokers_own(cluster)
    traffic.goes_on()
    traffic.end()
    cluster.wait_until_stored("t")
    cluster.tool_agrees("t")
    brokers_that_were_killed_come_up_at_once(cluster, tmp_path / "kafka")


def brokers_that_were_killed_come_up_at_once(cluster: ZookeeperCluster, folder: Path) -> None:
    """Kill all brokers and start them again, while ZooKeeper still has the sessions that they had."""
    for number in (1, 2, 3):
        cluster.broker(number).kill()
    code, said = on_cluster(folder, "up")
    assert code == 0, said
    assert "waiting for ZooKeeper to end the sessions of brokers that were killed: [1, 2, 3]" in said
    wait_until(lambda: set(cluster.states().values()) == {"active"}, "all brokers to be active again")


def without_engine(cluster: ZookeeperCluster, traffic: Traffic) -> None:
    """Let brokers serve for longer than the engine's sessions last, and then kill one."""
    epoch = cluster.controller_epoch()
    began_s = time.monotonic()
    while time.monotonic() - began_s < 1.5 * SESSION_S:
        traffic.goes_on()
    assert cluster.controller_epoch() == epoch
    cluster.broker(1).kill()
    wait_until(lambda: 1 not in cluster.present(), "ZooKeeper to miss the broker")
    assert cluster.controller_epoch() == epoch


def a_directory_fails(cluster: ZookeeperCluster, traffic: Traffic) -> None:
    """Give a broker a second log directory, and let it fail: only the replicas in it are replaced."""
    node = cluster.broker(1)
    assert node.stop()
    often = {"replica.high.watermark.checkpoint.interval.ms": "500"}
    node.spec = replace(node.spec, log_dirs=2, overrides=node.spec.overrides | often)
    cluster.restart(1)
    cluster.wait_for_isr("t", 2)
    # The directory with the fewest replicas takes new ones.
    cluster.create(NewTopic("placed", 2, replica_assignment=[[1, 2]] * 2))
    sender = ConfluentSender(cluster.bootstrap)
    for number in range(2):
        sender.send("placed", number, b"before")
    sender.finish(TIMEOUT_S)
    folder = node.data[1]
    assert [(folder / f"placed-{number}").is_dir() for number in range(2)] == [True, True]
    # In its place is a file, as in Kafka's own tests.
    folder.rename(folder.with_name("failed"))
    folder.write_bytes(b"")
    wait_until(lambda: isrs(cluster, "placed") == {(2,)}, "the replicas in the failed directory to be replaced")
    assert cluster.states()[1] == "active"
    assert {len(isr) for isr in isrs(cluster, "t")} == {2}
    traffic.goes_on()
    assert node.stop()
    folder.unlink()
    folder.with_name("failed").rename(folder)
    cluster.restart(1)
    cluster.wait_for_isr("placed", 2)
    assert lost_records(sender.acknowledged, read_all(cluster.bootstrap, "placed", 2)) == {}


def isrs(cluster: ZookeeperCluster, topic: str) -> set[tuple[int, ...]]:
    return {held["isr"] for held in cluster.partitions(topic).values()}


def settings_are_the_brokers_own(cluster: ZookeeperCluster) -> None:
    """Set what brokers keep in ZooKeeper themselves. The engine hears of what rules act on, and disturbs nothing."""
    change = "--alter --entity-type"
    cluster.tool(CONFIGS, f"{change} brokers --entity-default --add-config min.insync.replicas=2,log.cleaner.threads=2")
    cluster.tool(CONFIGS, f"{change} brokers --entity-name 1 --add-config log.cleaner.threads=1")
    cluster.tool(CONFIGS, f"{change} users --entity-name alice --add-config {QUOTA}")
    cluster.tool(CONFIGS, f"{change} clients --entity-default --add-config {QUOTA}")
    wait_until(lambda: config(cluster) == {"min.insync.replicas": "2"}, "the engine to hear of it")
    a_gateway_that_stops_hands_over(cluster)
    show = "--describe --entity-type"
    assert "log.cleaner.threads=2" in cluster.tool(CONFIGS, f"{show} brokers --entity-default")
    assert "log.cleaner.threads=1" in cluster.tool(CONFIGS, f"{show} brokers --entity-name 1")
    assert QUOTA in cluster.tool(CONFIGS, f"{show} users --entity-name alice")
    assert QUOTA in cluster.tool(CONFIGS, f"{show} clients --entity-default")
    cluster.tool(CONFIGS, f"{change} brokers --entity-default --delete-config min.insync.replicas")
    wait_until(lambda: config(cluster) == {}, "the engine to hear that it is gone")


def a_gateway_that_stops_hands_over(cluster: ZookeeperCluster) -> None:
    """Stop the gateway that leads. Then the other one leads, and the first one serves metrics when it is back."""
    first = cluster.leading_gateway()
    assert first.stop()
    wait_until(lambda: cluster.controller() != first.voter.voter, "the other gateway to lead")
    assert "handed over" in first.log_file.read_text()
    [port] = free_ports(1)
    first.settings["metrics.port"] = str(port)
    first.start()
    first.wait_until_started()
    wait_until(lambda: 'isrflow_gateway_brokers{state="active"} 3.0' in metrics(port), "it to know the brokers")
    assert "isrflow_gateway_leads 0.0" in metrics(port)


def metrics(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=TIMEOUT_S) as response:
        return str(response.read().decode())


def leaders(cluster: ZookeeperCluster) -> set[int]:
    return {held["leader"] for held in cluster.partitions("t").values()}


def config(cluster: ZookeeperCluster) -> dict[str, str]:
    """Return the settings of the whole cluster, as the engine has them."""
    return dict(read_image(cluster.bus.image()).cluster.config)
