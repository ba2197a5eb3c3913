"""``/controller`` of real brokers is removed by hand. Brokers compete for it with the gateway that leads."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic

from brokers.launch.gateway import GatewayService
from tests.real_kafka.zookeeper_steps import POLICY
from tests.support.freezing import freeze_process
from tests.support.rules_engine import RulesEngine
from tests.support.waiting import wait_until
from tests.support.zookeeper_cluster import ZookeeperCluster, started

pytestmark = [pytest.mark.zookeeper, pytest.mark.timeout(900)]
HAS_DECIDED = "has changed since"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ZookeeperCluster]:
    engine = RulesEngine()
    engine.start(tmp_path / "bus.db", **POLICY)
    with started(tmp_path / "kafka", tmp_path / "bus.db", "--gateways", "1") as cluster:
        yield cluster
    engine.stop()


def test_the_gateway_leads_again_unless_a_broker_has_decided_something(cluster: ZookeeperCluster) -> None:
    gateway = cluster.leading_gateway()
    cluster.create(NewTopic("t", 3, 3))
    cluster.agree("t")
    before = cluster.controller_epoch()
    cluster.remove_controller()
    leads_again(cluster, gateway, before)

    before = a_broker_leads(cluster, gateway)
    gateway.resume()
    leads_again(cluster, gateway, before)
    wait_until(lambda: "took the place back" in gateway.log_file.read_text(), "the gateway to say so")
    # Unlike other clients, the tool asks again if a broker tells it of the former controller.
    cluster.tool("TopicCommand", "--create --topic u --partitions 1 --replication-factor 3")
    cluster.agree("u")
    cluster.wait_until_stored("t")

    before = a_broker_leads(cluster, gateway)
    cluster.tool("TopicCommand", "--create --topic by-kafka --partitions 1 --replication-factor 3")
    gateway.resume()
    wait_until(lambda: f"/brokers/topics {HAS_DECIDED}" in gateway.log_file.read_text(), "the gateway to say why")
    assert cluster.controller() in {1, 2, 3}
    assert cluster.controller_epoch() == before


def a_broker_leads(cluster: ZookeeperCluster, gateway: GatewayService) -> int:
    """Freeze the gateway, and let a broker take the place. Return the broker's epoch."""
    freeze_process(cluster.bus_path, gateway.pid)
    before = cluster.controller_epoch()
    cluster.remove_controller()
    wait_until(lambda: cluster.controller_epoch() > before, "a broker to become the controller")
    assert cluster.controller() in {1, 2, 3}
    return cluster.controller_epoch()


def leads_again(cluster: ZookeeperCluster, gateway: GatewayService, before: int) -> None:
    """Wait until the gateway leads in a later epoch than ``before``."""

    def is_later() -> bool:
        said = [line for line in gateway.log_file.read_text().splitlines() if HAS_DECIDED in line]
        assert said == [], "the broker has decided something, so the gateway may not lead again"
        return cluster.controller_epoch() > before

    wait_until(is_later, "another term")
    wait_until(lambda: cluster.controller() == gateway.voter.voter, "the gateway to lead again")
