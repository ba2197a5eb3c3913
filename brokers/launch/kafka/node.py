"""One Kafka node: its folder, its storage, its process."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from brokers.launch.kafka import storage
from brokers.launch.kafka.properties import LOOPBACK, NodeSpec, log_dirs, log_properties, server_properties
from brokers.launch.service import Service, ServiceError
from conf.cache import cache_dir
from conf.class_archive import ClassArchive
from conf.jars import jars
from conf.java import java_home
from conf.kafka_versions import KafkaVersion
from conf.private_dir import private_dir

FORMAT_TIMEOUT_S = 120.0
METADATA_TIMEOUT_S = 5.0
_LOG_BYTES = "log_bytes"
# A node logs this once all of its parts run. By then a broker of Kafka 4 is unfenced.
_STARTED = b"Kafka Server started"
_STARTED_IN_ZOOKEEPER = b"started (kafka.server.KafkaServer)"
# On a small machine a quick start matters more than top speed.
JVM_FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def class_archive(version: str, home: Path) -> ClassArchive:
    """Return the archive of the classes of a version of Kafka for the Java at ``home``, written or not.

    It is beside the jars. With it a node needs 40 % less CPU time to start and to serve its first clients.
    """
    return ClassArchive(cache_dir() / "classes", f"kafka-{version}-serving", home)


def java_command(kafka: KafkaVersion, heap: str, flags: Sequence[str] | None, log_properties: Path) -> list[str]:
    """Return the beginning of a command that runs a class of Kafka's. Without ``flags`` it starts quickly."""
    home = java_home()
    if flags is None:
        flags = (*JVM_FLAGS, *class_archive(kafka.number, home).options)
    java = [str(home / "bin" / "java"), f"-Xmx{heap}", "-Djava.awt.headless=true", *flags]
    return [*java, f"-Dlog4j.configuration={log_properties.as_uri()}", "-cp", ":".join(map(str, jars(kafka.jars)))]


class KafkaError(ServiceError):
    """There is no such cluster, it cannot exist, or a node's storage cannot be formatted."""


class KafkaNode(Service):
    """One node, with its files in ``folder``, which need not exist yet."""

    awaited = "clients and brokers to be answered"

    def __init__(self, spec: NodeSpec, folder: Path, brokers: int = 1) -> None:
        super().__init__(f"{'+'.join(spec.roles)} {spec.node_id}", folder, "server.log", "console.log")
        self.spec = spec
        # Settings of the engine that leads this node. They are read when the node starts.
        self.engine_settings: Mapping[str, str] = {}
        self._brokers = brokers
        self._properties = self.folder / "server.properties"
        self._log_properties = self.folder / "log4j.properties"

    @property
    def data(self) -> list[Path]:
        """The node's log directories."""
        return log_dirs(self.spec, self.folder)

    def write_properties(self) -> None:
        """Write the files that the node reads when it starts. Raises ``ValueError`` or ``OSError``."""
        private_dir(self.folder)
        self._properties.write_text(server_properties(self.spec, self.folder, self._brokers, self.engine_settings))
        self._log_properties.write_text(log_properties(self.log_file))

    def format(self, cluster_id: str) -> None:
        """Format the node's storage, if it is not formatted. Raises ``KafkaError``, ``JarsError`` or ``JavaError``."""
        self.write_properties()
        # A broker in ZooKeeper mode formats its storage itself.
        if self.spec.zookeeper is not None or storage.is_formatted(self.data):
            return
        if storage.can_be_written(self.spec, self.data):
            storage.write(self.spec, self.data, cluster_id)
            return
        tool = ("kafka.tools.StorageTool", "format", "--ignore-formatted")
        java = java_command(self.spec.kafka, "256m", None, self._log_properties)
        command = [*java, *tool, "--cluster-id", cluster_id, "--config", str(self._properties)]
        try:
            done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=FORMAT_TIMEOUT_S)
        except subprocess.TimeoutExpired as error:
            raise KafkaError(f"{self.name}: its storage was not formatted in {FORMAT_TIMEOUT_S:.0f} s") from error
        if done.returncode != 0:
            raise KafkaError(
                f"{self.name}: its storage cannot be formatted: {done.stdout.strip()} {done.stderr.strip()}"
            )

    def command(self) -> list[str]:
        self.write_properties()
        java = java_command(self.spec.kafka, self.spec.heap, self.spec.jvm_flags, self._log_properties)
        return [*java, "kafka.Kafka", str(self._properties)]

    def figures(self) -> dict[str, int]:
        return {_LOG_BYTES: self.log_file.stat().st_size if self.log_file.exists() else 0}

    def is_ready(self) -> bool:
        """Return whether the node has logged, since this start, that all its parts run."""
        if not self.log_file.exists():
            return False
        with self.log_file.open("rb") as file:
            # A log that was rolled meanwhile is shorter than before, and is read from its beginning.
            before = self.before.get(_LOG_BYTES, 0)
            file.seek(before if self.log_file.stat().st_size >= before else 0)
            return (_STARTED if self.spec.zookeeper is None else _STARTED_IN_ZOOKEEPER) in file.read()

    def wait_until_led(self, timeout_s: float) -> None:
        """Wait until clients learn from this broker which node is the controller. Raises ``ServiceError``.

        A broker in ZooKeeper mode starts before a controller tells it of the cluster. A client that asks it meanwhile
        gets an empty answer, and may not ask again for minutes. Other nodes start only once they know the controller.
        """
        if self.spec.zookeeper is not None:
            self.wait_until(self._knows_controller, timeout_s, "was told of no controller")

    def _knows_controller(self) -> bool:
        # Imported here, because the other nodes need no Kafka client.
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        # A new client each time, because one that has asked before might ask another broker.
        client = AdminClient({"bootstrap.servers": f"{LOOPBACK}:{self.spec.port}", "log_level": 0})
        try:
            return bool(client.list_topics(timeout=METADATA_TIMEOUT_S).controller_id >= 0)
        except KafkaException:
            return False
