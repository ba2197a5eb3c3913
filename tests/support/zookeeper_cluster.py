"""Real brokers of Kafka 3.9 in ZooKeeper mode, as ``isrflow cluster up --zookeeper`` made them."""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from brokers.gateways.zk import znodes
from brokers.gateways.zk.channels.requests.building import Sender, requests_of
from brokers.gateways.zk.channels.requests.partition_states import PartitionStates
from brokers.gateways.zk.channels.requests.pending import Batch
from brokers.gateways.zk.cluster_view import ClusterView, Place
from brokers.gateways.zk.messages import BY_IBP, CATALOGUE
from brokers.gateways.zk.settings import Settings, settings_of
from brokers.launch.gateway import GatewayService
from brokers.launch.kafka.cluster import KafkaCluster
from brokers.launch.kafka.preparing import prepare
from brokers.launch.kafka.tools import CONFIGS, run_tool
from brokers.wire.connection import FrameConnection
from cli.cluster.led_cluster import LedCluster
from conf.kafka_versions import KAFKA_VERSIONS, ZOOKEEPER_KAFKA_VERSION
from tests.support.cluster_command import on_cluster
from tests.support.real_cluster import OVERRIDES
from tests.support.up_cluster import UpCluster
from tests.support.waiting import TIMEOUT_S, wait_until

TIMEOUT_MS, ANSWER_BYTES_MAX = int(TIMEOUT_S * 1000), 1 << 20
# Of a partition: leader, leader epoch, ISR in rising order, partition epoch.
Stored = tuple[int, int, tuple[int, ...], int]


class ZookeeperCluster(UpCluster):
    """The running cluster in a folder, on the embedded bus at ``bus_path``."""

    def __init__(self, folder: Path, bus_path: Path) -> None:
        super().__init__(folder, bus_path, "zookeeper-tools")
        assert self.led.zookeeper is not None
        self.zookeeper = self.led.zookeeper

    def tool(self, name: str, arguments: str) -> str:
        """Run one of the admin tools of Kafka 3.9. Raises ``ToolError`` when it fails."""
        kafka = KAFKA_VERSIONS[ZOOKEEPER_KAFKA_VERSION]
        jars = kafka.jars if name == CONFIGS else kafka.tools
        return run_tool(name, self.bootstrap, arguments.split(), jars)

    def wait_for_stored(self, topic: str, holds: Callable[[dict[int, Stored]], bool], what: str) -> None:
        """Wait until ``holds`` is true of what ZooKeeper has of a topic. This connects only once."""
        with self._client() as client:
            wait_until(lambda: holds(_stored(client, topic)), f"{what}, in what ZooKeeper holds")

    @property
    def settings(self) -> Settings:
        """The gateways' settings, which are the same for all."""
        return settings_of(dict(next(iter(self.gateways.values())).settings))

    def wait_until_stored(self, topic: str) -> None:
        """Wait until ZooKeeper holds what was decided. A znode that leaders write too has a version of its own."""

        count = 3 if self.settings.leaders_write_isrs else 4

        def is_decided(stored: dict[int, Stored]) -> bool:
            decided = self.decided(topic)
            return {n: held[:count] for n, held in stored.items()} == {n: held[:count] for n, held in decided.items()}

        self.wait_for_stored(topic, is_decided, "what was decided")

    def controller(self) -> int | None:
        """Return the id of the broker or gateway that holds ``/controller``; None if there is none."""
        with self._client() as client, suppress(NoNodeError):
            return znodes.controller_of(client.get(znodes.CONTROLLER)[0]).brokerid
        return None

    def present(self) -> set[int]:
        """Name the brokers whose znodes are there."""
        with self._client() as client:
            return {int(name) for name in client.get_children(znodes.BROKERS)}

    def leading_gateway(self) -> GatewayService:
        """Return the gateway that brokers obey."""
        controller: int = wait_until(self.controller, "a controller")
        return self.gateways[controller]

    def controller_epoch(self) -> int:
        with self._client() as client:
            return znodes.epoch_of(client.get(znodes.CONTROLLER_EPOCH)[0])

    def remove_controller(self) -> None:
        """Remove ``/controller`` by hand."""
        with self._client() as client:
            client.delete(znodes.CONTROLLER)

    def ask_to_move(self, topic: str, targets: Sequence[tuple[int, ...]]) -> None:
        """Ask in ZooKeeper for a move of each partition from 0 on."""
        partitions = [{"topic": topic, "partition": n, "replicas": target} for n, target in enumerate(targets)]
        with self._client() as client:
            client.create(znodes.REASSIGN_PARTITIONS, json.dumps({"version": 1, "partitions": partitions}).encode())

    def answers_to_a_stale_controller(self, broker: int) -> dict[int, int]:
        """Tell a broker everything as a controller of the epoch before would. Return the code of each answer by API."""
        view, batch = ClusterView(), Batch()
        view.begin_with(self.bus.image())
        batch.live = True
        batch.leader_and_isr = dict.fromkeys(view.places(), False)
        [known] = [held for held in view.live if held.broker == broker]
        [listener] = known.listeners
        versions = BY_IBP[self.settings.inter_broker_protocol_version]
        sender = Sender(min(self.gateways), self.controller_epoch() - 1, listener, listener.name, versions)

        states = PartitionStates(view, sender.controller_epoch, versions)

        async def told() -> dict[int, int]:
            codes = {}
            connection = await FrameConnection.open(listener.host, listener.port, TIMEOUT_MS, ANSWER_BYTES_MAX)
            for request in requests_of(batch, known, view, states, sender, {}):
                key = request.api_key
                version = versions.of(key)
                frame = CATALOGUE.encode_request(key, version, 1, "stale", request.values)
                answer = await connection.ask(frame, TIMEOUT_MS)
                codes[key] = CATALOGUE.decode_response(key, version, answer).values["ErrorCode"]
            connection.close()
            return codes

        return asyncio.run(told())

    def reassign(self, topic: str, replicas: tuple[int, ...]) -> None:
        """Move partition 0 of a topic as old tools do it: by asking in ZooKeeper. Wait until that is done."""
        self.ask_to_move(topic, [replicas])
        self.wait_until_moves_end()
        assert self.partitions(topic)[0]["replicas"] == replicas
        self.agree(topic)

    def wait_until_moves_end(self) -> None:
        """Wait until ZooKeeper has no moves, so that others can be asked for."""
        with self._client() as client:
            wait_until(lambda: client.exists(znodes.REASSIGN_PARTITIONS) is None, "the moves to end")

    @contextmanager
    def _client(self) -> Iterator[KazooClient]:
        client = KazooClient(hosts=self.zookeeper.address)
        client.start(timeout=TIMEOUT_S)
        try:
            yield client
        finally:
            client.stop()
            client.close()

    def decided(self, topic: str) -> dict[int, Stored]:
        """Return the same facts as the engine decided them."""
        return {
            number: (held["leader"], held["leader_epoch"], tuple(sorted(held["isr"])), held["partition_epoch"])
            for number, held in self.partitions(topic).items()
        }


def _stored(client: KazooClient, topic: str) -> dict[int, Stored]:
    found = {}
    for number in client.get_children(f"{znodes.topic_path(topic)}/partitions"):
        path = znodes.state_path(Place(topic, int(number)))
        data, stat = client.get(path)
        state = znodes.state_of(path, data)
        found[int(number)] = (state.leader, state.leader_epoch, tuple(sorted(state.isr)), stat.version)
    return found


@contextmanager
def started(folder: Path, bus_path: Path, *options: str, **overrides: str) -> Iterator[ZookeeperCluster]:
    """Start three brokers, a gateway and a ZooKeeper on a bus with an engine. Kill them at the end.

    ``overrides`` are Kafka's settings, with underscores for dots.
    """
    given = OVERRIDES | {name.replace("_", "."): value for name, value in overrides.items()}
    sets = [part for key, value in given.items() for part in ("--set", f"{key}={value}")]
    up = (
        "up",
        "--kafka",
        ZOOKEEPER_KAFKA_VERSION,
        "--zookeeper",
        "--bus",
        str(bus_path),
        "--heap",
        "384m",
        *options,
        *sets,
    )
    prepare(ZOOKEEPER_KAFKA_VERSION)
    try:
        code, said = on_cluster(folder, *up)
        if "ended by itself" in said:
            # A broker that gets no processor time while it starts loses its session with ZooKeeper, and ends.
            code, said = on_cluster(folder, "up")
        assert code == 0, said
        assert f"3 nodes of Kafka {ZOOKEEPER_KAFKA_VERSION}" in said
        yield ZookeeperCluster(folder, bus_path)
    finally:
        if (folder / "cluster.json").exists() and (led := LedCluster.open(KafkaCluster.open(folder))) is not None:
            led.kill()
