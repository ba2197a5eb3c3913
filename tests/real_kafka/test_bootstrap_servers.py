"""Brokers that name only bootstrap servers find the quorum's voters in the metadata log, also after they moved."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic

from brokers.gateways.kraft.metadata.voters import directory_id_of
from brokers.launch.gateway import GatewayProcess
from brokers.launch.kafka.tools import FEATURES, ToolError, run_tool
from brokers.launch.ports import free_ports
from brokers.voters import Voter
from bus.image import read_image
from tests.real_kafka.traffic import PARTITIONS, Traffic
from tests.support.real_cluster import LOOPBACK, RealCluster, led_by_rules
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.kraft, pytest.mark.timeout(600)]
# So that a broker that starts again reads the voters from a snapshot.
EVERY = {"metadata.log.max.record.bytes.between.snapshots": "4000"}
SAFE = {"min.insync.replicas": "2"}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RealCluster]:
    """Three brokers that know the addresses of two gateways, and neither their ids nor who votes."""
    cluster = RealCluster(tmp_path, brokers=3, gateways=2, gateway_settings=EVERY, **EVERY)
    servers = ",".join(f"{voter.host}:{voter.port}" for voter in cluster.voters)
    for node in cluster.kafka.nodes.values():
        node.spec.overrides.update(
            {"controller.quorum.voters": "", "controller.quorum.bootstrap.servers": servers, **node.spec.overrides}
        )
    with led_by_rules(cluster, but={1, 2, 3}, auto_leader_rebalance_enable=False):
        yield cluster


def by_controller(cluster: RealCluster, tool: str, *arguments: str) -> str:
    """Run one of Kafka's tools against the gateways themselves."""
    servers = ",".join(f"{voter.host}:{voter.port}" for voter in cluster.voters)
    return run_tool(tool, servers, arguments, is_controller=True)


def move(cluster: RealCluster, gateway: int) -> Voter:
    """Start a gateway on another port. Nobody else is told."""
    [port] = free_ports(1)
    moved = Voter(gateway, LOOPBACK, port)
    cluster.voters = [moved if voter.voter == gateway else voter for voter in cluster.voters]
    given = (cluster.cluster_id, str(cluster.bus_path), cluster.gateways[gateway].folder, EVERY)
    cluster.gateways[gateway] = GatewayProcess(moved, cluster.voters, *given)
    cluster.gateways[gateway].start()
    cluster.gateways[gateway].wait_until_started()
    return moved


def knows(cluster: RealCluster, broker: int, voter: Voter) -> bool:
    """Return whether the newest voters that a broker has logged have this one."""
    *_, newest = re.findall(r"Latest set of voters is (.*)", cluster.broker(broker).log_file.read_text())
    return f"id={voter.voter}," in newest and f":{voter.port}}}" in newest


def test_brokers_find_gateways_by_the_voters_in_the_log(cluster: RealCluster) -> None:
    by_controller(cluster, FEATURES, "upgrade", "--feature", "kraft.version=1", "--feature", "group.version=1")
    for broker in (1, 2, 3):
        cluster.restart(broker)
    assert re.search(r"kraft\.version.*FinalizedVersionLevel: 1\s", cluster.tool(FEATURES, "describe"))
    told = cluster.tool("MetadataQuorumCommand", "describe --status")
    assert f'"id": 100, "directoryId": "{directory_id_of(100)}"' in told, told
    with pytest.raises(ToolError, match=r"kraft\.version"):
        cluster.tool(FEATURES, "downgrade --feature kraft.version=0")
    cluster.create(*(NewTopic(name, PARTITIONS, 3, config=SAFE) for name in ("t", "t-whole")))
    traffic = Traffic(cluster.bootstrap, "t")
    traffic.goes_on()

    # A broker that is away while the other gateway leads finds it through its bootstrap servers.
    cluster.broker(3).kill()
    cluster.gateways[100].kill()
    cluster.wait_for_the_end_of(3)
    cluster.create(*(NewTopic(f"more{number}", 9, 2) for number in range(8)))
    cluster.restart(3)
    cluster.wait_for_isr("t", 3)
    traffic.goes_on()

    # A gateway on a port that neither brokers nor the other gateway were told of leads them.
    moved = move(cluster, 100)
    wait_until(lambda: all(knows(cluster, broker, moved) for broker in (1, 2, 3)), "brokers to know the new address")
    cluster.gateways[101].kill()
    wait_until(lambda: read_image(cluster.bus.image()).cluster.quorum.voter == 100, "the moved gateway to lead")
    # Brokers ask their bootstrap servers for the leader, of which this is the only one that is left.
    cluster.gateways[101].start()
    cluster.gateways[101].wait_until_started()
    cluster.broker(2).kill()
    cluster.wait_for_the_end_of(2)
    cluster.restart(2)
    cluster.wait_for_isr("t", 3)
    traffic.goes_on()
    traffic.end()
    cluster.agree("t")
