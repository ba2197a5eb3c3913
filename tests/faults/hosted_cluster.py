"""Two clusters of real brokers, each node on a host of its own: one led by gateways, one led by Kafka's controllers."""

import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from brokers.launch.gateway import GatewayProcess
from brokers.launch.kafka.cluster import random_cluster_id
from brokers.launch.kafka.node import KafkaNode
from brokers.launch.kafka.preparing import prepare
from brokers.launch.kafka.properties import CONTROLLER_LISTENER, LISTENER, NodeSpec, log_dirs
from brokers.launch.service import Service, kill_all
from brokers.voters import Voter
from brokers.wire.metadata.topic import METADATA_DIRECTORY
from bus.image import read_image
from bus.open_bus import open_bus
from state.decisions import encode
from state.events import RaiseLevel
from state.level import NEWEST_LEVEL
from tests.faults.network import Network, is_listening
from tests.faults.timeline import Timeline, told_by_log
from tests.support.real_cluster import LOOKS_SELDOM
from tests.support.rules_engine import RulesEngine
from tests.support.waiting import TIMEOUT_S, wait_until

BROKERS = (1, 2, 3)
BUS, ZOOKEEPER = "bus", "zookeeper"
PORT, CONTROLLER_PORT = 9092, 9093
HEAP = "256m"
SESSION_MS = 9_000
# A follower that lost its leader asks the next one after 100 ms, not after Kafka's default of a second.
OVERRIDES = {
    "replica.fetch.backoff.ms": "100",
    "replica.lag.time.max.ms": "10000",
}


def host_of(node: int) -> str:
    return f"node{node}"


class HostedNode(KafkaNode):
    """A node of Kafka on a host of a network."""

    within: Sequence[str] = ()

    def command(self) -> list[str]:
        return [*self.within, *super().command()]


class HostedGateway(GatewayProcess):
    """A gateway on a host of a network."""

    within: Sequence[str] = ()

    def command(self) -> list[str]:
        return [*self.within, *super().command()]


class HostedCluster:
    """Brokers 1 to 3 and their ``controllers``, by ids from 100 on."""

    controller_count: int
    # Hosts besides those of the nodes.
    more_hosts: tuple[str, ...] = ()

    def __init__(self, folder: Path, net: Network, session_ms: int = SESSION_MS) -> None:
        prepare()
        self.folder = folder
        self.net = net
        self.session_ms = session_ms
        self.cluster_id = random_cluster_id()
        self.voters = tuple(
            Voter(node, net.addresses[host_of(node)], CONTROLLER_PORT) for node in self.controller_ids()
        )
        self.controllers: dict[int, Service] = {}
        self.brokers = {number: self.node(self.broker_spec(number)) for number in BROKERS}

    @classmethod
    def controller_ids(cls) -> tuple[int, ...]:
        return tuple(range(100, 100 + cls.controller_count))

    @classmethod
    def hosts(cls) -> list[str]:
        return [host_of(node) for node in (*BROKERS, *cls.controller_ids())] + [*cls.more_hosts]

    def broker_spec(self, number: int) -> NodeSpec:
        at = f"{LISTENER}://{self.net.addresses[host_of(number)]}:{PORT}"
        overrides = OVERRIDES | {"listeners": at, "advertised.listeners": at}
        return NodeSpec(
            node_id=number, roles=("broker",), voters=self.voters, port=PORT, heap=HEAP, overrides=overrides
        )

    def node(self, spec: NodeSpec) -> HostedNode:
        node = HostedNode(spec, self.folder / f"node-{spec.node_id}", len(BROKERS))
        node.within = self.net.within(host_of(spec.node_id))
        return node

    def start(self) -> None:
        """Start everything, and wait until brokers serve."""
        for controller in self.controllers.values():
            controller.start()
        for node in self.controllers:
            self.wait_for_controller(node)
        for broker in self.brokers.values():
            broker.format(self.cluster_id)
            broker.start()
        for broker in self.brokers.values():
            broker.wait_until_started()

    def wait_for_controller(self, node: int) -> None:
        """Wait until a controller listens."""
        address = self.net.addresses[host_of(node)]
        wait_until(lambda: is_listening(address, CONTROLLER_PORT), f"controller {node} to listen")

    def stop(self) -> None:
        """Kill everything."""
        kill_all([*self.brokers.values(), *self.controllers.values()])

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{self.net.addresses[host_of(number)]}:{PORT}" for number in BROKERS)

    def metadata_logs(self) -> list[Path]:
        """Return the directories of the metadata log: the controllers' own, and the brokers' copies."""
        nodes = [node for node in (*self.brokers.values(), *self.controllers.values()) if isinstance(node, KafkaNode)]
        gateways = [one for one in self.controllers.values() if isinstance(one, GatewayProcess)]
        return [
            *(log_dirs(node.spec, node.folder)[0] / METADATA_DIRECTORY for node in nodes),
            *(gateway.log_directory for gateway in gateways),
        ]

    def timeline(self, since_s: float = 0.0) -> Timeline:
        """Return the cluster's history since ``since_s``."""
        return told_by_log(self.metadata_logs(), int(since_s * 1000))

    def leading(self) -> int:
        """Return the controller that leads."""
        voter, _ = self.timeline().leaders[-1]
        return voter

    def log_ends(self, broker: int) -> dict[Path, int]:
        """Return the size of each segment of each partition on a broker."""
        [data] = self.brokers[broker].data
        return {
            path: path.stat().st_size for path in data.glob("*-[0-9]*/*.log") if METADATA_DIRECTORY not in path.parts
        }

    def cut_logs(self, broker: int, ends: Mapping[Path, int]) -> None:
        """Cut the logs of a killed broker back to former ends, as a loss of power does."""
        for path in self.log_ends(broker):
            os.truncate(path, ends.get(path, 0))

    def wait_until_whole(self) -> None:
        """Wait until no broker is fenced and all replicas are in sync."""
        wait_until(lambda: self.timeline().is_whole(len(BROKERS)), "all replicas to be in sync", TIMEOUT_S)


class LedCluster(HostedCluster):
    """Brokers led by two gateways, on a bus file on which the rules decide in this process.

    All hosts share the file system, so no cut keeps gateways from the bus.
    """

    controller_count = 2

    def __init__(self, folder: Path, net: Network, session_ms: int = SESSION_MS) -> None:
        super().__init__(folder, net, session_ms)
        self.bus = self.bus_url()
        self._engine = RulesEngine()
        self.controllers |= {voter.voter: self.gateway(voter) for voter in self.voters}

    def gateway(self, voter: Voter) -> Service:
        place = self.folder / f"gateway-{voter.voter}"
        gateway = HostedGateway(voter, self.voters, self.cluster_id, self.bus, place, LOOKS_SELDOM)
        gateway.within = self.net.within(host_of(voter.voter))
        return gateway

    def bus_url(self) -> str:
        return str(self.folder / "bus.db")

    def start(self) -> None:
        self._engine.start(self.bus, broker_session_timeout_ms=self.session_ms, auto_leader_rebalance_enable=False)
        self._raise_level()
        super().start()

    def _raise_level(self) -> None:
        """Raise the level of the bus before gateways start, which begin the metadata log."""
        with contextlib.closing(open_bus(self.bus)) as bus:
            bus.publish([encode(RaiseLevel(time_ms=0, level=NEWEST_LEVEL))])
            wait_until(lambda: read_image(bus.image()).cluster.level == NEWEST_LEVEL, "the level to be raised")

    def stop(self) -> None:
        super().stop()
        self._engine.stop()


class OnKafkaBus(LedCluster):
    """The same, with the bus on a Kafka of its own, on a host of its own."""

    more_hosts = (BUS,)

    def __init__(self, folder: Path, net: Network, session_ms: int = SESSION_MS) -> None:
        super().__init__(folder, net, session_ms)
        here = net.addresses[BUS]
        bound = f"{LISTENER}://{here}:{PORT},{CONTROLLER_LISTENER}://{here}:{CONTROLLER_PORT}"
        spec = NodeSpec(
            node_id=1,
            roles=("broker", "controller"),
            voters=(Voter(1, here, CONTROLLER_PORT),),
            port=PORT,
            controller_port=CONTROLLER_PORT,
            heap=HEAP,
            overrides={"listeners": bound, "advertised.listeners": bound},
        )
        self._bus_node = HostedNode(spec, folder / "bus")
        self._bus_node.within = net.within(BUS)

    def bus_url(self) -> str:
        return f"kafka://{self.net.addresses[BUS]}:{PORT}"

    def start(self) -> None:
        self._bus_node.format(random_cluster_id())
        self._bus_node.start()
        self._bus_node.wait_until_started()
        super().start()

    def stop(self) -> None:
        super().stop()
        self._bus_node.kill()


class StockCluster(HostedCluster):
    """The same brokers, led by three of Kafka's own controllers, because two could not lose one."""

    controller_count = 3

    def __init__(self, folder: Path, net: Network, session_ms: int = SESSION_MS) -> None:
        super().__init__(folder, net, session_ms)
        for voter in self.voters:
            at = f"{CONTROLLER_LISTENER}://{voter.host}:{CONTROLLER_PORT}"
            overrides = {
                "listeners": at,
                "advertised.listeners": at,
                "broker.session.timeout.ms": str(session_ms),
                "auto.leader.rebalance.enable": "false",
            }
            spec = NodeSpec(
                node_id=voter.voter,
                roles=("controller",),
                voters=self.voters,
                controller_port=CONTROLLER_PORT,
                heap=HEAP,
                overrides=overrides,
            )
            self.controllers[voter.voter] = self.node(spec)

    def start(self) -> None:
        for controller in self.controllers.values():
            assert isinstance(controller, KafkaNode)
            controller.format(self.cluster_id)
        super().start()
