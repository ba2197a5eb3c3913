"""A demo cluster of real Kafka: an engine, two gateways, and brokers, perhaps in ZooKeeper mode."""

import json
from pathlib import Path

from brokers.launch.kafka.tools import LEADER_ELECTION, REASSIGN_PARTITIONS, TOPICS, run_tool
from brokers.launch.service import Service
from cli.cluster.led_cluster import LedCluster
from cli.demo.cluster import BROKERS, HOST, DemoCluster, DemoError
from conf.kafka_versions import KAFKA_VERSION, KAFKA_VERSIONS, ZOOKEEPER_KAFKA_VERSION

HEAP = "384m"
# A broker whose port refuses is fenced at once. Leaders move back only when the story asks for it.
TIMES = ("broker.connection.lost.grace.ms=0", "auto.leader.rebalance.enable=false")


def jar_sets(*, zookeeper: bool) -> tuple[str, str]:
    """Return the names of the jars of the brokers and of Kafka's tools."""
    kafka = KAFKA_VERSIONS[ZOOKEEPER_KAFKA_VERSION if zookeeper else KAFKA_VERSION]
    return kafka.jars, kafka.tools


class KafkaDemoCluster(DemoCluster):
    """An engine, two gateways and real Kafka brokers, with Kafka's own tools to administer them."""

    def __init__(self, directory: Path, *, zookeeper: bool = False) -> None:
        bus = directory / "bus.db"
        super().__init__(directory, bus)
        self.in_zookeeper = zookeeper
        self._led = LedCluster.create(
            directory / "kafka",
            bus,
            brokers=len(BROKERS),
            engine_settings=self.engine_settings(TIMES),
            zookeeper=zookeeper,
            heap=HEAP,
        )

    def start_engine(self) -> None:
        """Start the engine, without waiting until it decides."""
        self.start_service(self._led.engine)

    def wait_for_engine(self) -> None:
        """Wait until the engine decides."""
        self._led.engine.wait_until_started()

    def start(self) -> None:
        self.start_engine()
        if self._led.zookeeper is not None:
            self.start_service(self._led.zookeeper)
            self._led.zookeeper.wait_until_started()
        for gateway in self._led.gateways.values():
            self.start_service(gateway)
        self._led.kafka.format()
        for gateway in self._led.gateways.values():
            gateway.wait_until_started()
        # Brokers start last, as in 'isrflow cluster up', because a broker that cannot register retries and uses CPU.
        self.wait_for_engine()
        for broker in BROKERS:
            self.start_service(self.broker(broker))

    def wait_until_started(self) -> None:
        for broker in BROKERS:
            self.broker(broker).wait_until_started()

    def broker(self, broker: int) -> Service:
        return self._led.kafka.nodes[broker]

    def bootstrap_servers(self) -> list[str]:
        nodes = self._led.kafka.nodes.values()
        return [f"{HOST}:{node.spec.port}" for node in nodes if node.state == "running"]

    def create_topic(self, topic: str, partitions: int, min_isr: int) -> None:
        sizes = ("--partitions", str(partitions), "--replication-factor", str(len(BROKERS)))
        self._tool(TOPICS, "--create", "--topic", topic, *sizes, "--config", f"min.insync.replicas={min_isr}")

    def reassign(self, topic: str, partition: int, replicas: tuple[int, ...]) -> None:
        """Request that a partition move to ``replicas``, without waiting for it."""
        plan = self.directory / "reassignment.json"
        moved = {"topic": topic, "partition": partition, "replicas": replicas}
        plan.write_text(json.dumps({"version": 1, "partitions": [moved]}))
        self._tool(REASSIGN_PARTITIONS, "--execute", "--reassignment-json-file", str(plan))

    def elect_preferred_leaders(self) -> None:
        """Request an election of each partition's preferred replica."""
        self._tool(LEADER_ELECTION, "--election-type", "preferred", "--all-topic-partitions")

    def stop_broker(self, broker: int, timeout_s: float) -> None:
        """Stop a broker, which first hands over what it leads. Raises ``DemoError`` if it does not end in time."""
        if not self.broker(broker).stop(timeout_s):
            raise DemoError(f"broker {broker} did not stop within {timeout_s:.0f} s after SIGTERM")

    def _tool(self, name: str, *arguments: str) -> None:
        _, tools = jar_sets(zookeeper=self.in_zookeeper)
        run_tool(name, ",".join(self.bootstrap_servers()), arguments, tools)
