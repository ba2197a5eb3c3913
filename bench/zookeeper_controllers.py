"""The controllers in ZooKeeper mode that are measured: one of Kafka 3.9, and the engine behind a gateway."""

from collections.abc import Sequence
from pathlib import Path

from bench.controllers import CONTROLLER, KAFKAS_JVM_FLAGS, EngineBehindGateway, StockController
from brokers.launch.gateway import GatewayService, ZookeeperGatewayProcess
from brokers.launch.kafka.properties import NodeSpec
from brokers.launch.kafka.zookeeper import ZookeeperProcess
from brokers.launch.ports import free_ports
from brokers.voters import Voter
from conf.jars import fetch

# Its znode of the controller is ephemeral, so the next controller waits for the end of the session.
SESSION_MS = 6_000


class StockInZookeeper(StockController):
    """A broker of Kafka 3.9 that has no replicas, with the JVM options and the heap that Kafka ships."""

    def __init__(self, folder: Path) -> None:
        (self.port,) = free_ports(1)
        self._server = zookeeper_in(folder)
        self.zookeeper = self._server.address
        spec = NodeSpec(
            node_id=CONTROLLER,
            roles=("broker",),
            voters=(),
            port=self.port,
            zookeeper=self.zookeeper,
            heap="1g",
            jvm_flags=KAFKAS_JVM_FLAGS,
            overrides={"auto.leader.rebalance.enable": "false", "zookeeper.session.timeout.ms": str(SESSION_MS)},
        )
        self.make_cluster(folder, spec)

    def start(self) -> None:
        self._server.start()
        self._server.wait_until_started()
        super().start()

    def restart(self) -> None:
        node = self._cluster.nodes[CONTROLLER]
        node.kill()
        self._server.wait_until_sessions_end([CONTROLLER])
        node.start()

    def stop(self) -> None:
        super().stop()
        self._server.kill()


class EngineInZookeeper(EngineBehindGateway):
    """The engine as users start it, and one gateway."""

    def __init__(self, folder: Path, settings: Sequence[str]) -> None:
        self._server = zookeeper_in(folder)
        self.zookeeper = self._server.address
        super().__init__(folder, settings)

    def gateway_of(self, voter: Voter, folder: Path) -> GatewayService:
        return ZookeeperGatewayProcess(voter, (voter,), self.cluster_id, self.zookeeper, str(self.bus_path), folder)

    def start(self) -> None:
        self._server.start()
        self._server.wait_until_started()
        super().start()

    def restart(self) -> None:
        self.gateway.kill()
        self.gateway.start()

    def stop(self) -> None:
        super().stop()
        self._server.kill()


def zookeeper_in(folder: Path) -> ZookeeperProcess:
    """Make a ZooKeeper server with its files below ``folder``."""
    fetch("zookeeper-broker")
    (port,) = free_ports(1)
    return ZookeeperProcess(port, folder / "zookeeper")
