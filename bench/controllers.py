"""The controllers that the protocol driver measures: one of stock Kafka, and the engine behind a gateway."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from brokers.launch.gateway import GatewayProcess, GatewayService
from brokers.launch.kafka.cluster import KafkaCluster, random_cluster_id
from brokers.launch.kafka.properties import LOOPBACK, NodeSpec
from brokers.launch.ports import free_ports
from brokers.voters import Voter
from bus.embedded import EmbeddedBus
from conf.jars import fetch
from state.level import NEWEST_LEVEL
from tests.support.engine import Engine, encoded

CONTROLLER = 100
# As ``kafka-run-class.sh`` has them.
KAFKAS_JVM_FLAGS = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
)


class Controller(Protocol):
    """A running controller: its address, its cluster and its processes."""

    port: int
    cluster_id: str

    def start(self) -> None: ...
    def stop(self) -> None: ...

    @property
    def pids(self) -> list[int]: ...


class StockController:
    """One KRaft controller of stock Kafka, with the JVM options and the heap that Kafka ships."""

    def __init__(self, folder: Path, session_ms: int, heap: str = "1g") -> None:
        fetch("kafka-broker")
        (self.port,) = free_ports(1)
        spec = NodeSpec(
            node_id=CONTROLLER,
            roles=("controller",),
            voters=(Voter(CONTROLLER, LOOPBACK, self.port),),
            controller_port=self.port,
            heap=heap,
            jvm_flags=KAFKAS_JVM_FLAGS,
            overrides={"broker.session.timeout.ms": str(session_ms)},
        )
        self.make_cluster(folder, spec)

    def make_cluster(self, folder: Path, spec: NodeSpec) -> None:
        """Make a cluster of nothing but the controller."""
        self._cluster = KafkaCluster.create(folder / "kafka", (spec,))
        self.cluster_id = self._cluster.cluster_id

    def start(self) -> None:
        self._cluster.up()

    def stop(self) -> None:
        self._cluster.kill()

    @property
    def pids(self) -> list[int]:
        pid = self._cluster.nodes[CONTROLLER].pid
        return [] if pid is None else [pid]


class EngineBehindGateway:
    """The engine as users start it, and one gateway."""

    def __init__(self, folder: Path, settings: Sequence[str]) -> None:
        self._folder = folder
        self._settings = settings
        (self.port,) = free_ports(1)
        self.cluster_id = random_cluster_id()
        self.bus_path = folder / "bus.db"
        self.gateway = self.gateway_of(Voter(CONTROLLER, LOOPBACK, self.port), folder / "gateway")
        self._engine: Engine | None = None

    def gateway_of(self, voter: Voter, folder: Path) -> GatewayService:
        """Make the gateway, which is not started."""
        return GatewayProcess(voter, [voter], self.cluster_id, str(self.bus_path), folder)

    def start(self) -> None:
        try:
            self.start_engine()
            self.gateway.start()
            self.gateway.wait_until_started()
            self._raise_level()
        except BaseException:
            self.stop()
            raise

    def _raise_level(self) -> None:
        bus = EmbeddedBus(self.bus_path)
        bus.publish([encoded("raise_level", level=NEWEST_LEVEL)])
        bus.close()

    def start_engine(self) -> None:
        """Make the bus, and let the engine decide on it."""
        bus = EmbeddedBus(self.bus_path)
        try:
            self._engine = Engine(self._folder, *self._settings)
            self._engine.wait_ready(bus)
        finally:
            bus.close()

    def stop(self) -> None:
        self.gateway.kill()
        if self._engine is not None:
            self._engine.kill()

    @property
    def pids(self) -> list[int]:
        gateway = [] if self.gateway.pid is None else [self.gateway.pid]
        return gateway if self._engine is None else [self._engine.process.pid, *gateway]
