"""Brokers of ``inter.broker.protocol.version`` 2.6 write ISRs into ZooKeeper, and the engine goes on from there."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from confluent_kafka.admin import NewTopic

from tests.real_kafka.traffic import PARTITIONS, Traffic
from tests.real_kafka.zookeeper_steps import (
    CLIENT_TIMEOUT_MS,
    HALF,
    POLICY,
    Replicas,
    gateways_take_turns,
    is_frozen_and_continued,
    is_handed_back_and_adopted,
    moves_go_on_when_a_broker_comes_back,
    wait_until_moved,
    zookeeper_comes_back,
)
from tests.support.rules_engine import RulesEngine
from tests.support.waiting import wait_until
from tests.support.zookeeper_cluster import ZookeeperCluster, started

pytestmark = [pytest.mark.zookeeper, pytest.mark.long, pytest.mark.timeout(900)]
SAFE = {"min.insync.replicas": "2"}


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[RulesEngine]:
    """The rules on a bus, under which the cluster begins."""
    engine = RulesEngine()
    engine.start(tmp_path / "bus.db", **POLICY)
    yield engine
    engine.stop()


@pytest.fixture
def cluster(tmp_path: Path, engine: RulesEngine) -> Iterator[ZookeeperCluster]:
    """Brokers of 3.9.1 that speak as 2.6 did, under the rules."""
    options = ("--gateways", "2")
    with started(tmp_path / "kafka", tmp_path / "bus.db", *options, inter_broker_protocol_version="2.6") as cluster:
        yield cluster


def reasons(cluster: ZookeeperCluster) -> set[str]:
    """Return the reasons for which leaders or ISRs have changed so far."""
    decided = [msgspec.json.decode(one.body) for one in cluster.bus.decisions((0, -1), 1_000_000)]
    return {one["reason"] for one in decided if one["kind"] == "leader_and_isr"}


def members(cluster: ZookeeperCluster) -> set[int]:
    """Name the brokers that are in any ISR, as the engine decided it."""
    return {member for held in cluster.partitions("t").values() for member in held["isr"]}


def test_nothing_acknowledged_is_lost_where_leaders_write_their_isrs(
    cluster: ZookeeperCluster, engine: RulesEngine, next_engine: RulesEngine, tmp_path: Path
) -> None:
    """One test, because starting the cluster takes longer than the checks."""
    cluster.create(NewTopic("t", PARTITIONS, 3, config=SAFE), NewTopic("t-whole", PARTITIONS, 3, config=SAFE))
    for topic in ("t", "t-whole"):
        cluster.agree(topic)
    traffic = Traffic(cluster.bootstrap, "t", CLIENT_TIMEOUT_MS)
    traffic.goes_on()

    cluster.broker(1).kill()
    wait_until(lambda: 1 not in members(cluster), "the ISRs to shrink")
    traffic.goes_on()
    cluster.restart(1)
    cluster.wait_for_isr("t", 3)
    is_frozen_and_continued(cluster, traffic, 2)
    gateways_take_turns(cluster, traffic)
    leaders_go_on_alone(cluster, traffic)
    zookeeper_comes_back(cluster, traffic, late=False)
    replicas_move_away_and_back(cluster, traffic)
    assert {"ISR_SHRUNK", "ISR_EXPANDED"} <= reasons(cluster)

    engine.stop()
    leaders_go_on_without_an_engine(cluster, traffic)
    folder = tmp_path / "kafka"
    is_handed_back_and_adopted(cluster, folder, next_engine, tmp_path / "next.db", traffic)


def replicas_move_away_and_back(cluster: ZookeeperCluster, traffic: Traffic) -> None:
    """Move all replicas away from broker 3, then one of each partition back to it while it fails, and then all."""
    pairs: list[Replicas] = [(1, 2), (2, 1)] * HALF
    cluster.ask_to_move("t", pairs)
    wait_until_moved(cluster, pairs)
    moves_go_on_when_a_broker_comes_back(cluster, traffic)
    all_three: list[Replicas] = [(1, 2, 3), (2, 3, 1)] * HALF
    cluster.ask_to_move("t", all_three)
    wait_until_moved(cluster, all_three)
    cluster.wait_for_isr("t", 3)
    traffic.goes_on()


def leaders_go_on_alone(cluster: ZookeeperCluster, traffic: Traffic) -> None:
    """Kill both gateways and a broker. Nobody elects, but the leaders that live go on by themselves."""
    for gateway in cluster.gateways.values():
        gateway.kill()
    cluster.broker(3).kill()
    a_leader_writes_its_isr_without_broker_3(cluster)
    for gateway in cluster.gateways.values():
        gateway.start()
    for gateway in cluster.gateways.values():
        gateway.wait_until_started()
    wait_until(lambda: 3 not in members(cluster), "the engine to hear of it")
    traffic.goes_on()
    cluster.restart(3)
    cluster.wait_for_isr("t", 3)
    traffic.goes_on()


def leaders_go_on_without_an_engine(cluster: ZookeeperCluster, traffic: Traffic) -> None:
    """Let leaders write their ISRs while nobody decides, so that the cluster is handed back with what they wrote."""
    traffic.goes_on()
    cluster.broker(3).pause()
    a_leader_writes_its_isr_without_broker_3(cluster)
    cluster.broker(3).resume()
    cluster.wait_for_stored(
        "t", lambda stored: all(len(held[2]) == 3 for held in stored.values()), "the broker to catch up"
    )
    traffic.goes_on()


def a_leader_writes_its_isr_without_broker_3(cluster: ZookeeperCluster) -> None:
    cluster.wait_for_stored(
        "t", lambda stored: any(3 not in held[2] for held in stored.values()), "a leader to write its ISR"
    )
