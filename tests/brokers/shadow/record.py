"""Record the metadata log of a stock Kafka cluster to which things happen: one controller, three brokers.

    .venv/bin/python -m tests.brokers.shadow.record 4.1.0

writes ``logs/kafka-4.1.0.tar.xz``: what a controller has on its disk at the end, and ``steps.json`` with what was done
when. The tests of ``brokers.shadow`` read it. It takes three minutes, and 1.5 GiB of memory.
"""

import json
import os
import signal
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from kafka import TopicPartition
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ConfigResource,
    ConfigResourceType,
    KafkaAdminClient,
    NewPartitions,
    ResourcePattern,
    ResourceType,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from kafka.errors import KafkaError

from brokers.launch.kafka.cluster import KafkaCluster
from brokers.launch.kafka.properties import LOOPBACK, NodeSpec
from brokers.launch.kafka.tools import CONFIGS, run_tool
from brokers.launch.ports import free_ports
from brokers.voters import Voter
from brokers.wire.metadata.topic import METADATA_DIRECTORY
from conf.jars import fetch
from conf.kafka_versions import KAFKA_VERSION, KAFKA_VERSIONS
from tests.support.controller_client import ControllerClient
from tests.support.real_cluster import AUTHORIZER
from tests.support.waiting import wait_until

LOGS = Path(__file__).parent / "logs"
CONTROLLER = 100
# It must reach no bus, and no report.
PASSWORD = "open-sesame"
SETTINGS = {
    "authorizer.class.name": AUTHORIZER,
    "super.users": "User:ANONYMOUS",
    "metadata.log.max.record.bytes.between.snapshots": "5000",
    "replica.lag.time.max.ms": "3000",
    "min.insync.replicas": "2",
    "leader.imbalance.check.interval.seconds": "3600",
}
_PREFERRED, _UNCLEAN = 0, 1
TRIES_MAX = 10


class Recording:
    """A cluster, and what was done to it."""

    def __init__(self, folder: Path, version: str) -> None:
        ports = free_ports(4)
        voters = (Voter(CONTROLLER, LOOPBACK, ports[0]),)
        common: dict[str, Any] = {"voters": voters, "version": version, "heap": "256m", "overrides": SETTINGS}
        controller = NodeSpec(node_id=CONTROLLER, roles=("controller",), controller_port=ports[0], **common)
        brokers = [NodeSpec(node_id=n, roles=("broker",), port=ports[n], **common) for n in (1, 2, 3)]
        self.version = version
        self.cluster = KafkaCluster.create(folder, [controller, *brokers])
        self.steps: list[dict[str, Any]] = []

    def play(self) -> None:
        self.cluster.up()
        self.admin = self._client()
        self.watching = AdminClient({"bootstrap.servers": self.cluster.bootstrap, "log_level": 0})
        for step in (self._topics, self._settings, self._failures, self._moves, self._losses, self._rest):
            step()
        self.admin.close()

    def did(self, what: str, do: Callable[[], Any], until: Callable[[], bool] = lambda: True) -> None:
        """Do one thing, wait until its effect shows, and note both times."""
        print(what, flush=True)
        began_ms = time.time_ns() // 1_000_000
        self._try(do)
        wait_until(until, f"what follows from: {what}")
        # The next thing gets a batch of its own.
        time.sleep(0.3)
        self.steps.append({"what": what, "began_ms": began_ms, "ended_ms": time.time_ns() // 1_000_000})

    def _try(self, do: Callable[[], Any]) -> None:
        """Do one thing. The client may ask a broker that is not there any more, so a new one tries again."""
        for tries_left in reversed(range(TRIES_MAX)):
            try:
                do()
                return
            except KafkaError:
                if not tries_left:
                    raise
                time.sleep(1)
                self.admin.close()
                self.admin = self._client()

    def _client(self) -> KafkaAdminClient:
        return KafkaAdminClient(bootstrap_servers=self.cluster.bootstrap.split(","))

    def sees(self, topic: str, partition: int, *, leader: int | None = None, isr: set[int] | None = None) -> bool:
        topics = self._topics_now()
        if topic not in topics or partition not in topics[topic].partitions:
            return False
        found = topics[topic].partitions[partition]
        return (leader is None or found.leader == leader) and (isr is None or set(found.isrs) == isr)

    def _topics_now(self) -> dict[str, Any]:
        with suppress(KafkaException):
            return dict(self.watching.list_topics(timeout=10).topics)
        return {}

    def whole(self) -> bool:
        topics = self._topics_now()
        return bool(topics) and all(
            set(one.isrs) == set(one.replicas) and one.leader >= 0
            for topic in topics.values()
            for one in topic.partitions.values()
        )

    def _topics(self) -> None:
        def create(name: str, **assignments: Any) -> None:
            self.did(f"create {name}", lambda: self.admin.create_topics({name: assignments}), self.whole)

        if self.version == "4.0.2":
            self.did("enable elr", lambda: self.admin.update_features({"eligible.leader.replicas.version": 1}))
        create("orders", assignments={0: [1, 2, 3], 1: [2, 3, 1], 2: [3, 1, 2], 3: [2, 1, 3]})
        create("pair", assignments={0: [2, 3]}, configs={"min.insync.replicas": "1"})
        create("frail", assignments={0: [2, 3]}, configs={"min.insync.replicas": "1"})
        create("single", assignments={0: [3]}, configs={"min.insync.replicas": "1", "retention.ms": "60000"})
        create("brief", assignments={0: [1, 2], 1: [1, 2]})
        self.did("add partitions", lambda: self.admin.create_partitions({"brief": NewPartitions(3, [[2, 1]])}))

    def _settings(self) -> None:
        def config(kind: str, name: str, **values: str) -> Any:
            given = {key.replace("_", "."): value for key, value in values.items()}
            resource = ConfigResource(ConfigResourceType[kind], name, given)
            return self.admin.alter_configs([resource], raise_on_unknown=False)

        self.did("set topic", lambda: config("TOPIC", "orders", retention_ms="3600000"))
        self.did("set broker", lambda: config("BROKER", "1", log_cleaner_threads="2"))
        self._tool("set cluster", "--entity-type brokers --entity-default --add-config message.max.bytes=900000")
        secret = f"--entity-type brokers --entity-name 1 --add-config listener.name.tls.ssl.key.password={PASSWORD}"
        self._tool("set secret", secret)
        credential = UserScramCredentialUpsertion("alice", ScramMechanism.SCRAM_SHA_256, PASSWORD)
        self.did("set password", lambda: self.admin.alter_user_scram_credentials([credential]))
        pattern = ResourcePattern(ResourceType.TOPIC, "orders")
        acl = ACL("User:alice", "*", ACLOperation.READ, ACLPermissionType.ALLOW, pattern)
        self.did("allow", lambda: self.admin.create_acls([acl]))
        self._tool("set quota", "--entity-type users --entity-name alice --add-config producer_byte_rate=1048576")

    def _tool(self, what: str, arguments: str) -> None:
        self.did(what, lambda: run_tool(CONFIGS, self.cluster.bootstrap, ["--alter", *arguments.split()]))

    def _failures(self) -> None:
        two, three = self.cluster.nodes[2], self.cluster.nodes[3]
        # Broker 3 falls behind, and catches up before its session ends.
        assert three.pid is not None
        pid = three.pid

        def suspend() -> None:
            os.kill(pid, signal.SIGSTOP)
            # A follower falls behind only what is written.
            producer = Producer({"bootstrap.servers": self.cluster.bootstrap, "acks": "1"})
            for number in (0, 1, 3):
                producer.produce("orders", b"written while 3 is suspended", partition=number)
            producer.flush(5)

        self.did("suspend 3", suspend, lambda: self.sees("orders", 0, isr={1, 2}))
        self.did("resume 3", lambda: os.kill(pid, signal.SIGCONT), self.whole)
        self.did("kill 2", two.kill, lambda: self.sees("orders", 1, leader=3, isr={1, 3}))
        self.did("start 2", lambda: _started(two), self.whole)
        preferred = {"orders": [0, 1, 2, 3], "pair": [0], "frail": [0], "brief": [0, 1, 2]}
        elect = lambda: self.admin.elect_leaders(_PREFERRED, preferred, raise_errors=False)
        self.did("elect preferred", elect, lambda: self.sees("orders", 1, leader=2))
        self.did("stop 3", lambda: three.stop(60), lambda: self.sees("orders", 2, leader=1, isr={1, 2}))
        # The session of a broker that has stopped ends too.
        time.sleep(10)
        self.did("start 3", lambda: _started(three), self.whole)

    def _moves(self) -> None:
        def move(*moves: list[int] | None) -> None:
            self.admin.alter_partition_reassignments(
                {TopicPartition("pair", partition): move for partition, move in enumerate(moves)}
            )

        self.did("reorder pair", lambda: move([3, 2]))
        self.did("move pair", lambda: move([1, 2]), lambda: self.sees("pair", 0, isr={1, 2}))
        three = self.cluster.nodes[3]
        self.did("kill 3", three.kill, lambda: self.sees("orders", 2, isr={1, 2}))
        self.did("move pair to 3", lambda: move([1, 3]))
        self.did("cancel the move", lambda: move(None))

    def _losses(self) -> None:
        """Broker 3 is away, so the ISR of frail is broker 2 alone."""
        two, three = self.cluster.nodes[2], self.cluster.nodes[3]
        self.did("kill 2 again", two.kill, lambda: self.sees("orders", 0, isr={1}))
        self.did("start 3 again", lambda: _started(three), lambda: self.sees("single", 0, leader=3))
        elect = lambda: self.admin.elect_leaders(_UNCLEAN, {"frail": [0]}, raise_errors=False)
        self.did("elect uncleanly", elect, lambda: self.sees("frail", 0, leader=3))
        self.did("start 2 again", lambda: _started(two), self.whole)

    def _rest(self) -> None:
        controller, three = self.cluster.nodes[CONTROLLER], self.cluster.nodes[3]
        self.did("delete brief", lambda: self.admin.delete_topics(["brief"]))
        resource = ConfigResource(ConfigResourceType.TOPIC, "orders", {"min.insync.replicas": "1"})
        self.did("set min isr", lambda: self.admin.alter_configs([resource], raise_on_unknown=False))

        def restart() -> None:
            controller.stop(60)
            _started(controller)

        self.did("restart controller", restart, self.whole)
        self.did("stop 3 for good", lambda: three.stop(60), lambda: self.sees("orders", 0, isr={1, 2}))
        time.sleep(1)
        port = controller.spec.controller_port
        assert port is not None

        def unregister() -> None:
            assert ControllerClient(port).ask("UnregisterBroker", BrokerId=3)["ErrorCode"] == 0

        self.did("unregister 3", unregister)

    def write(self, path: Path) -> None:
        """Pack what the stopped controller has on its disk."""
        [data] = self.cluster.nodes[CONTROLLER].data
        steps = self.cluster.folder / "steps.json"
        steps.write_text(json.dumps({"kafka": self.version, "steps": self.steps}, indent=1))
        with tarfile.open(path, "w:xz", preset=9) as bundle:
            for file in (data / "meta.properties", steps, *sorted((data / METADATA_DIRECTORY).iterdir())):
                if file.suffix in (".log", ".checkpoint", ".json", ".properties"):
                    inside = file.parent.name == METADATA_DIRECTORY
                    bundle.add(file, f"{METADATA_DIRECTORY}/{file.name}" if inside else file.name, filter=_anyones)


def _started(node: Any) -> None:
    node.start()
    node.wait_until_started()


def _anyones(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


def record(version: str) -> None:
    fetch(KAFKA_VERSIONS[version].jars)
    with tempfile.TemporaryDirectory() as folder:
        recording = Recording(Path(folder) / "cluster", version)
        try:
            recording.play()
            recording.cluster.down()
            recording.write(LOGS / f"kafka-{version}.tar.xz")
        finally:
            recording.cluster.kill()


if __name__ == "__main__":
    record(sys.argv[1] if len(sys.argv) > 1 else KAFKA_VERSION)
