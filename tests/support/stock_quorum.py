"""A cluster of unmodified Kafka: controllers 101, 102, … and brokers 1, 2, …, each a process of its own."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from brokers.launch.kafka.cluster import KafkaCluster, broker_specs
from brokers.launch.kafka.node import KafkaNode
from brokers.launch.kafka.preparing import prepare
from brokers.launch.kafka.properties import LOOPBACK, NodeSpec
from brokers.launch.ports import free_ports
from brokers.shadow.controller_line import Endpoint
from brokers.voters import Voter
from conf.kafka_versions import KAFKA_VERSION

HEAP = "256m"


class StockQuorum:
    """The cluster. Kafka's own settings are in ``of_controllers`` and ``of_brokers``."""

    def __init__(
        self,
        directory: Path,
        controllers: int = 1,
        brokers: int = 0,
        version: str = KAFKA_VERSION,
        of_controllers: Mapping[str, str] = MappingProxyType({}),
        of_brokers: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        prepare(version)
        self.voters = [Voter(101 + number, LOOPBACK, port) for number, port in enumerate(free_ports(controllers))]
        specs = [
            NodeSpec(
                node_id=voter.voter,
                roles=("controller",),
                voters=tuple(self.voters),
                controller_port=voter.port,
                heap=HEAP,
                version=version,
                overrides=dict(of_controllers),
            )
            for voter in self.voters
        ]
        if brokers:
            specs += broker_specs(brokers, self.voters, heap=HEAP, version=version, overrides=dict(of_brokers))
        self.cluster = KafkaCluster.create(directory, specs)

    @property
    def endpoints(self) -> list[Endpoint]:
        """The controllers' addresses."""
        return [Endpoint(voter.host, voter.port) for voter in self.voters]

    def node(self, number: int) -> KafkaNode:
        return self.cluster.nodes[number]

    def __enter__(self) -> "StockQuorum":
        self.cluster.up()
        return self

    def __exit__(self, *_: object) -> None:
        self.cluster.kill()
