"""Real brokers of Kafka 4 led by gateways, on a bus on which some engine decides, and Kafka's own admin tools."""

import re
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from confluent_kafka.admin import AdminClient, NewTopic

from brokers.launch.gateway import GatewayProcess
from brokers.launch.kafka.cluster import KafkaCluster, broker_specs, random_cluster_id
from brokers.launch.kafka.node import KafkaNode
from brokers.launch.kafka.preparing import prepare, prepare_tools
from brokers.launch.kafka.tools import run_tool
from brokers.launch.ports import free_ports
from brokers.voters import Voter
from brokers.wire.metadata.topic import METADATA_DIRECTORY
from bus.embedded import EmbeddedBus
from bus.image import view_of_image
from conf.kafka_versions import KAFKA_VERSION
from tests.support.rules_engine import RulesEngine
from tests.support.waiting import TIMEOUT_S, wait_until

LOOPBACK = "127.0.0.1"
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
# The settings of an engine that leads real brokers.
POLICY = {
    "broker_session_timeout_ms": 6_000,
    "broker_connection_lost_grace_ms": 0,
    "auto_leader_rebalance_enable": False,
}
# A follower that lost its leader asks the next one after 100 ms, not after Kafka's default of a second.
OVERRIDES = {"replica.fetch.backoff.ms": "100", "replica.lag.time.max.ms": "4000", "controlled.shutdown.enable": "true"}
# An idle gateway mostly looks for decisions. This interval halves the cost of 10 ms.
LOOKS_SELDOM = {"decisions.poll.interval.ms": "50"}


class Described(NamedTuple):
    """One partition, with its ISR in rising order."""

    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


def _names_none(address: str, brokers: tuple[int, ...]) -> bool:
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    return not set(brokers) & set(admin.list_topics(timeout=TIMEOUT_S).brokers)


class RealCluster:
    """Gateways (100, 101, …) and real brokers (1, 2, …) under ``directory``.

    ``gateway_settings`` are for the gateways; ``overrides`` are Kafka's settings, for all brokers.
    """

    def __init__(
        self,
        directory: Path,
        brokers: int = 3,
        gateways: int = 1,
        gateway_settings: Mapping[str, str] = MappingProxyType({}),
        log_dirs: int = 1,
        version: str = KAFKA_VERSION,
        **overrides: str,
    ) -> None:
        prepare(version)
        prepare_tools()
        self.directory = directory
        self.bus_path = directory / "bus.db"
        self.bus = EmbeddedBus(self.bus_path)
        self.cluster_id = random_cluster_id()
        copies = [directory / "kafka" / f"node-{n}" / "data-0" / METADATA_DIRECTORY for n in range(1, brokers + 1)]
        ports = free_ports(gateways)
        self.voters = [Voter(100 + number, LOOPBACK, port) for number, port in enumerate(ports)]
        self.gateways = {
            voter.voter: GatewayProcess(
                voter,
                self.voters,
                self.cluster_id,
                str(self.bus_path),
                directory / f"gateway-{voter.voter}",
                LOOKS_SELDOM | dict(gateway_settings),
                copies,
            )
            for voter in self.voters
        }
        specs = broker_specs(brokers, self.voters, overrides=OVERRIDES | overrides, log_dirs=log_dirs, version=version)
        self.kafka = KafkaCluster.create(directory / "kafka", specs, self.cluster_id)

    def start(self, but: Container[int] = ()) -> None:
        """Start everything except the brokers in ``but``, and wait until each started broker is unfenced."""
        for gateway in self.gateways.values():
            gateway.start()
        for gateway in self.gateways.values():
            gateway.wait_until_started()
        self.kafka.format()
        nodes = [node for number, node in self.kafka.nodes.items() if number not in but]
        for node in nodes:
            node.start()
        for node in nodes:
            node.wait_until_started()

    def stop(self) -> None:
        """Kill everything."""
        self.kafka.kill()
        for gateway in self.gateways.values():
            gateway.kill()
        self.bus.close()

    @property
    def bootstrap(self) -> str:
        return self.kafka.bootstrap

    @property
    def addresses(self) -> list[str]:
        """The addresses of the brokers that have not ended."""
        nodes = [node for node in self.kafka.nodes.values() if node.state == "running"]
        return [f"{LOOPBACK}:{node.spec.port}" for node in nodes]

    def broker(self, number: int) -> KafkaNode:
        return self.kafka.nodes[number]

    def restart(self, broker: int) -> None:
        """Start a broker that has ended, and wait until it is unfenced."""
        self.broker(broker).start()
        self.broker(broker).wait_until_started()

    def wait_for_the_end_of(self, *brokers: int) -> None:
        """Wait until the engine and all other brokers know that ``brokers`` are gone.

        A client asks the broker that others name as the controller, and does not try another while that broker is gone.
        """
        wait_until(lambda: {self.states()[one] for one in brokers} == {"fenced"}, f"{brokers} to be fenced")
        for address in self.addresses:
            wait_until(partial(_names_none, address, brokers), f"{address} to hear that {brokers} are fenced")

    # What the engine says

    def view(self) -> dict[str, Any]:
        return view_of_image(self.bus.image())

    def partitions(self, topic: str) -> dict[int, dict[str, Any]]:
        return {held["partition"]: held for held in self.view()["partitions"] if held["topic"] == topic}

    def states(self) -> dict[int, str]:
        return {held["broker"]: held["state"] for held in self.view()["brokers"]}

    def wait_for_isr(self, topic: str, size: int) -> None:
        """Wait until the ISR of each partition of ``topic`` has ``size`` members."""

        def in_sync() -> bool:
            return all(len(held["isr"]) == size for held in self.partitions(topic).values())

        wait_until(in_sync, f"{size} members in the ISRs of {topic}")

    # What any client can ask

    def create(self, *topics: NewTopic) -> None:
        """Create topics."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        for created in admin.create_topics(list(topics)).values():
            created.result(TIMEOUT_S)

    def served(self, topic: str) -> dict[int, Described]:
        """Describe a topic by the metadata that clients get."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        # Ask about all topics, because a question about a missing one may create it.
        found = admin.list_topics(timeout=TIMEOUT_S).topics.get(topic)
        return {
            number: Described(held.leader, tuple(held.replicas), tuple(sorted(held.isrs)))
            for number, held in (found.partitions if found else {}).items()
        }

    def agree(self, topic: str) -> None:
        """Wait until brokers and the engine describe a topic alike."""
        wait_until(
            lambda: self.served(topic) == self._decided(topic),
            f"brokers and the engine to describe {topic} alike",
        )

    def _decided(self, topic: str) -> dict[int, Described]:
        return {
            number: Described(held["leader"], tuple(held["replicas"]), tuple(sorted(held["isr"])))
            for number, held in self.partitions(topic).items()
        }

    # What Kafka's own tools say

    def tool(self, name: str, arguments: str) -> str:
        """Run one of Kafka's admin tools with ``arguments``, and return what it prints.

        Raises ``ToolError`` when it fails.
        """
        return run_tool(name, self.bootstrap, arguments.split())

    def described(self, topic: str) -> dict[int, Described]:
        """Describe a topic with ``kafka-topics``."""
        rows = re.findall(
            r"Partition: (\d+)\s+Leader: (\S+)\s+Replicas: (\S+)\s+Isr: (\S*)",
            self.tool("TopicCommand", f"--describe --topic {topic}"),
        )
        return {
            int(number): Described(_id(leader), _ids(replicas), tuple(sorted(_ids(isr))))
            for number, leader, replicas, isr in rows
        }

    def tool_agrees(self, topic: str) -> None:
        """Wait until Kafka's tool and the engine describe a topic alike."""
        # The tool takes a second of CPU time, so ask it only once the answer should be right.
        self.agree(topic)
        wait_until(
            lambda: self.described(topic) == self._decided(topic),
            f"Kafka's tool and the engine to describe {topic} alike",
        )


@contextmanager
def led_by_rules(cluster: RealCluster, but: Container[int] = (), **policy: object) -> Iterator[None]:
    """Run a cluster except the brokers in ``but``, under the rules alone, until the block ends.

    Other tests cover the job around the rules. ``policy`` has Kafka's names, with underscores for dots.
    """
    engine = RulesEngine()
    engine.start(cluster.bus_path, **policy)
    try:
        cluster.start(but)
        yield
    finally:
        cluster.stop()
        engine.stop()


def _id(text: str) -> int:
    return -1 if text == "none" else int(text)


def _ids(text: str) -> tuple[int, ...]:
    return tuple(int(one) for one in text.split(",") if one)
