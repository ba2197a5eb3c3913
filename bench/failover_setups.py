"""The setups whose fail-over is compared: Kafka with its own controller, and the same brokers under the engine.

Every setup has three broker processes with the same settings, and one controller: a Kafka node that is only a
controller, or the Spark job with one gateway. Where Kafka uses ZooKeeper, a fourth broker without replicas is the
controller.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from bench.controllers import CONTROLLER
from bench.zookeeper_controllers import EngineInZookeeper, zookeeper_in
from brokers.launch.kafka.cluster import KafkaCluster, broker_specs
from brokers.launch.kafka.properties import LOOPBACK, NodeSpec
from brokers.launch.ports import free_ports
from brokers.voters import Voter
from bus.embedded import EmbeddedBus
from bus.interface import Bus
from cli.cluster.led_cluster import ZOOKEEPER_ENGINE_SETTINGS
from conf.jars import fetch
from conf.kafka_versions import ZOOKEEPER_KAFKA_VERSION
from tests.support.real_cluster import OVERRIDES, RealCluster
from tests.support.spark_engine import SparkEngine

BROKERS = 3
# Tests of real brokers shorten these times. The benchmark needs Kafka's defaults.
_KAFKAS_OWN = {"replica.fetch.backoff.ms": "1000", "replica.lag.time.max.ms": "30000"}


class Running(NamedTuple):
    """A running setup; ``bus`` is set if the engine leads it."""

    kafka: KafkaCluster
    bus: Bus | None = None


class Plain(NamedTuple):
    """The setup with Kafka's own controller; ``session_ms=None`` keeps Kafka's default session."""

    name: str
    session_ms: int | None = None

    @contextmanager
    def running(self, directory: Path, brokers: Mapping[str, str]) -> Iterator[Running]:
        fetch("kafka-broker")
        (port,) = free_ports(1)
        voters = (Voter(CONTROLLER, LOOPBACK, port),)
        session = {} if self.session_ms is None else {"broker.session.timeout.ms": str(self.session_ms)}
        controller = NodeSpec(
            node_id=CONTROLLER, roles=("controller",), voters=voters, controller_port=port, overrides=session
        )
        specs = broker_specs(BROKERS, voters, overrides=dict(brokers))
        cluster = KafkaCluster.create(directory / "kafka", (controller, *specs))
        try:
            cluster.up()
            yield Running(cluster)
        finally:
            cluster.kill()


class UnderEngine(NamedTuple):
    """The setup with the Spark job and one gateway."""

    name: str
    session_ms: int
    connection_lost_grace_ms: int

    @contextmanager
    def running(self, directory: Path, brokers: Mapping[str, str]) -> Iterator[Running]:
        assert set(_KAFKAS_OWN) <= set(OVERRIDES)
        cluster = RealCluster(directory, BROKERS, **{**_KAFKAS_OWN, **brokers})
        engine = SparkEngine()
        try:
            engine.start(
                cluster.bus_path,
                broker_session_timeout_ms=self.session_ms,
                broker_connection_lost_grace_ms=self.connection_lost_grace_ms,
            )
            cluster.start()
            yield Running(cluster.kafka, cluster.bus)
        finally:
            cluster.stop()
            engine.kill()


class PlainInZookeeper(NamedTuple):
    """The setup of Kafka 3.9 with a controller of its own, which hears from ZooKeeper when a broker is gone."""

    name: str
    session_ms: int

    @contextmanager
    def running(self, directory: Path, brokers: Mapping[str, str]) -> Iterator[Running]:
        with ExitStack() as stack:
            zookeeper = zookeeper_in(directory)
            stack.callback(zookeeper.kill)
            zookeeper.start()
            zookeeper.wait_until_started()
            overrides = dict(brokers) | {"zookeeper.session.timeout.ms": str(self.session_ms)}
            (port,) = free_ports(1)
            controller = NodeSpec(
                node_id=CONTROLLER,
                roles=("broker",),
                voters=(),
                port=port,
                zookeeper=zookeeper.address,
                overrides=overrides,
            )
            specs = broker_specs(BROKERS, (), zookeeper=zookeeper.address, overrides=overrides)
            cluster = KafkaCluster.create(directory / "kafka", (controller, *specs))
            stack.callback(cluster.kill)
            # The first one to start is the controller.
            node = cluster.nodes[CONTROLLER]
            node.format(cluster.cluster_id)
            node.start()
            node.wait_until_started()
            cluster.up()
            yield Running(cluster)


class InZookeeperUnderEngine(NamedTuple):
    """The setup of Kafka 3.9 with the Spark job and one gateway, which hears from ZooKeeper when a broker is gone."""

    name: str
    session_ms: int

    @contextmanager
    def running(self, directory: Path, brokers: Mapping[str, str]) -> Iterator[Running]:
        with ExitStack() as stack:
            controller = EngineInZookeeper(directory, ZOOKEEPER_ENGINE_SETTINGS)
            stack.callback(controller.stop)
            overrides = dict(brokers) | {"zookeeper.session.timeout.ms": str(self.session_ms)}
            specs = broker_specs(BROKERS, (), zookeeper=controller.zookeeper, overrides=overrides)
            cluster = KafkaCluster.create(directory / "kafka", specs, controller.cluster_id)
            stack.callback(cluster.kill)
            controller.start()
            cluster.up()
            bus = EmbeddedBus(controller.bus_path)
            stack.callback(bus.close)
            yield Running(cluster, bus)


Setup = Plain | UnderEngine | PlainInZookeeper | InZookeeperUnderEngine


def setups(session_ms: int) -> list[Setup]:
    """List the setups to compare; ``session_ms`` is the session of all but the one with Kafka's default."""
    return [
        Plain("Kafka's controller, default (session 9 s)"),
        Plain(f"Kafka's controller, session {session_ms / 1000:g} s", session_ms),
        UnderEngine(f"engine, session {session_ms / 1000:g} s, told of lost connections", session_ms, 0),
        UnderEngine(f"engine, session {session_ms / 1000:g} s alone", session_ms, -1),
        PlainInZookeeper(
            f"Kafka {ZOOKEEPER_KAFKA_VERSION}'s controller in ZooKeeper mode, session {session_ms / 1000:g} s",
            session_ms,
        ),
        InZookeeperUnderEngine(
            f"engine, brokers of {ZOOKEEPER_KAFKA_VERSION} in ZooKeeper mode, session {session_ms / 1000:g} s",
            session_ms,
        ),
    ]
