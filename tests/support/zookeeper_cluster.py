"""Real brokers of Kafka 3.9 in ZooKeeper mode, as ``isrflow cluster up --zookeeper`` made them."""

from pathlib import Path

from kazoo.client import KazooClient

from brokers.gateways.zk import znodes
from brokers.gateways.zk.cluster_view import Place
from brokers.launch.kafka.cluster import KafkaCluster
from brokers.launch.kafka.tools import run_tool
from bus.embedded import EmbeddedBus
from cli.cluster.led_cluster import LedCluster
from conf.jars import fetch
from tests.support.real_cluster import RealCluster
from tests.support.waiting import TIMEOUT_S

# Of a partition: leader, leader epoch, ISR in rising order, partition epoch.
Stored = tuple[int, int, tuple[int, ...], int]


class ZookeeperCluster(RealCluster):
    """The running cluster in a folder, on the embedded bus at ``bus_path``."""

    def __init__(self, folder: Path, bus_path: Path) -> None:
        fetch("zookeeper-tools")
        self.bus = EmbeddedBus(bus_path)
        self.kafka = KafkaCluster.open(folder)
        led = LedCluster.open(self.kafka)
        assert led is not None and led.zookeeper is not None
        self.zookeeper = led.zookeeper
        [self.gateway] = led.gateways.values()

    def tool(self, name: str, arguments: str) -> str:
        """Run one of the admin tools of Kafka 3.9. Raises ``ToolError`` when it fails."""
        return run_tool(name, self.bootstrap, arguments.split(), "zookeeper-tools")

    def stored(self, topic: str) -> dict[int, Stored]:
        """Return what ZooKeeper holds of each partition, with its znode's version as the partition epoch."""
        client = KazooClient(hosts=self.zookeeper.address)
        client.start(timeout=TIMEOUT_S)
        try:
            found = {}
            for number in client.get_children(f"{znodes.topic_path(topic)}/partitions"):
                path = znodes.state_path(Place(topic, int(number)))
                data, stat = client.get(path)
                state = znodes.state_of(path, data)
                found[int(number)] = (state.leader, state.leader_epoch, tuple(sorted(state.isr)), stat.version)
            return found
        finally:
            client.stop()
            client.close()

    def decided(self, topic: str) -> dict[int, Stored]:
        """Return the same of what the engine decided."""
        return {
            number: (held["leader"], held["leader_epoch"], tuple(sorted(held["isr"])), held["partition_epoch"])
            for number, held in self.partitions(topic).items()
        }
