"""Brokers in ZooKeeper mode that two gateways lead, each of them and ZooKeeper on a host of its own."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from brokers.launch.gateway import ZookeeperGatewayProcess
from brokers.launch.kafka.preparing import prepare
from brokers.launch.kafka.properties import NodeSpec
from brokers.launch.kafka.zookeeper import ZookeeperProcess
from brokers.launch.service import Service
from brokers.voters import Voter
from bus.embedded import EmbeddedBus
from conf.kafka_versions import ZOOKEEPER_KAFKA_VERSION
from tests.faults.hosted_cluster import PORT, ZOOKEEPER, LedCluster, host_of
from tests.faults.network import Network
from tests.faults.timeline import Timeline, told_by_decisions
from tests.support.waiting import wait_until

ZOOKEEPER_PORT = 2181
DECISIONS_MAX = 100_000
# ZooKeeper says when a broker is gone.
ENGINE_SESSION_MS = 60_000
METADATA_TIMEOUT_S = 5.0


class HostedZookeeper(ZookeeperProcess):
    """ZooKeeper on a host of a network."""

    within: Sequence[str] = ()

    def command(self) -> list[str]:
        return [*self.within, *super().command()]


class HostedZookeeperGateway(ZookeeperGatewayProcess):
    """A gateway to brokers in ZooKeeper mode, on a host of a network."""

    within: Sequence[str] = ()

    def command(self) -> list[str]:
        return [*self.within, *super().command()]


class OnZookeeper(LedCluster):
    """Brokers of Kafka 3.9 in ZooKeeper mode."""

    more_hosts = (ZOOKEEPER,)

    def __init__(self, folder: Path, net: Network, session_ms: int = ENGINE_SESSION_MS) -> None:
        prepare(ZOOKEEPER_KAFKA_VERSION)
        self.zookeeper = HostedZookeeper(ZOOKEEPER_PORT, folder / ZOOKEEPER, net.addresses[ZOOKEEPER])
        self.zookeeper.within = net.within(ZOOKEEPER)
        super().__init__(folder, net, session_ms)

    def broker_spec(self, number: int) -> NodeSpec:
        return msgspec.structs.replace(super().broker_spec(number), voters=(), zookeeper=self.zookeeper.address)

    def gateway(self, voter: Voter) -> Service:
        place = self.folder / f"gateway-{voter.voter}"
        gateway = HostedZookeeperGateway(voter, self.voters, self.cluster_id, self.zookeeper.address, self.bus, place)
        gateway.within = self.net.within(host_of(voter.voter))
        return gateway

    def start(self) -> None:
        self.zookeeper.start()
        self.zookeeper.wait_until_started()
        super().start()
        for number in self.brokers:
            wait_until(lambda: self._knows_controller(number), f"broker {number} to know the controller")  # noqa: B023

    def _knows_controller(self, broker: int) -> bool:
        # A client that has asked before might ask another broker.
        client = AdminClient({"bootstrap.servers": f"{self.net.addresses[host_of(broker)]}:{PORT}", "log_level": 0})
        try:
            return bool(client.list_topics(timeout=METADATA_TIMEOUT_S).controller_id >= 0)
        except KafkaException:
            return False

    def stop(self) -> None:
        super().stop()
        self.zookeeper.kill()

    def timeline(self, since_s: float = 0.0) -> Timeline:
        bus = EmbeddedBus(Path(self.bus))
        try:
            decisions = bus.decisions((0, 0), DECISIONS_MAX)
        finally:
            bus.close()
        return told_by_decisions((msgspec.json.decode(one.body) for one in decisions), int(since_s * 1000))
