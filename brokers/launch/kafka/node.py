"""One Kafka node: its folder, its storage, its process."""

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from brokers.launch.kafka import storage
from brokers.launch.kafka.java_properties import file_url
from brokers.launch.kafka.properties import LOOPBACK, NodeSpec, log_dirs, log_properties, server_properties
from brokers.launch.service import Service, ServiceError
from conf.cache import cache_dir
from conf.class_archive import ClassArchive
from conf.jars import jars
from conf.java import java_home
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

    It is beside the jars. With it a node starts with 40 % less CPU time, and so it serves its first clients.
    """
    return ClassArchive(cache_dir() / "classes", f"kafka-{version}-serving", home)


class KafkaError(ServiceError):
    """There is no such cluster, it cannot exist, or a node's storage cannot be formatted."""


class KafkaNode(Service):
    """One node, with its files in ``folder``, which need not exist yet."""

    awaited = "clients and brokers to be answered"

    def __init__(self, spec: NodeSpec, folder: Path, brokers: int = 1) -> None:
        super().__init__(f"{'+'.join(spec.roles)} {spec.node_id}", folder, "server.log", "console.log")
        self.spec = spec
        # Settings of the engine that leads this node, read when the node starts.
        self.engine_settings: Mapping[str, str] = {}
        self._brokers = brokers
        self._properties = self.folder / "server.properties"
        self._log_properties = self.folder / "log4j.properties"

    @property
    def data(self) -> list[Path]:
        """Return the node's log directories."""
        return log_dirs(self.spec, self.folder)

    def write_properties(self) -> None:
        """Write the files that the node reads when it starts. Raises ``ValueError`` or OSError."""
        private_dir(self.folder)
        self._properties.write_text(server_properties(self.spec, self.folder, self._brokers, self.engine_settings))
        self._log_properties.write_text(log_properties(self.log_file))

    def format(self, cluster_id: str) -> None:
        """Format the node's storage, if that was not done before.

        Raises ``KafkaError``, ``JarsError`` or ``JavaError``.
        """
        self.write_properties()
        if self.spec.zookeeper is not None:
            # Such a broker makes its storage by itself.
            return
        if storage.is_formatted(self.data):
            return
        if storage.can_be_written(self.spec, self.data):
            storage.write(self.spec, self.data, cluster_id)
            return
        tool = ("kafka.tools.StorageTool", "format", "--ignore-formatted")
        command = [*self._java("256m", None), *tool, "--cluster-id", cluster_id, "--config", str(self._properties)]
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
        return [*self._java(self.spec.heap, self.spec.jvm_flags), "kafka.Kafka", str(self._properties)]

    def _java(self, heap: str, flags: Sequence[str] | None) -> Iterator[str]:
        home = java_home()
        class_path = ":".join(map(str, jars(self.spec.kafka.jars)))
        yield from (str(home / "bin" / "java"), f"-Xmx{heap}", "-Djava.awt.headless=true")
        yield from (*JVM_FLAGS, *class_archive(self.spec.kafka.number, home).options) if flags is None else flags
        yield from (f"-Dlog4j.configuration={file_url(self._log_properties)}", "-cp", class_path)

    def figures(self) -> dict[str, int]:
        return {_LOG_BYTES: self.log_file.stat().st_size if self.log_file.exists() else 0}

    def is_ready(self) -> bool:
        """Say whether the node has logged, since this start, that all its parts run."""
        if not self.log_file.exists():
            return False
        with self.log_file.open("rb") as file:
            # A log that was rolled meanwhile is shorter than before, so read it from its beginning.
            before = self.before.get(_LOG_BYTES, 0)
            file.seek(before if self.log_file.stat().st_size >= before else 0)
            return (_STARTED if self.spec.zookeeper is None else _STARTED_IN_ZOOKEEPER) in file.read()

    def wait_until_led(self, timeout_s: float) -> None:
        """Wait until clients learn from this broker who the controller is. Raises ``ServiceError``.

        A broker in ZooKeeper mode has started before a controller tells it of the cluster. A client that asks it
        meanwhile gets an empty answer, and may not ask again for minutes. Others start when they know the controller.
        """
        if self.spec.zookeeper is not None:
            self.wait_until(self._knows_controller, timeout_s, "was told of no controller")

    def _knows_controller(self) -> bool:
        # Imported here, because the other nodes need no Kafka client.
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        # A client that has asked before might ask another broker.
        client = AdminClient({"bootstrap.servers": f"{LOOPBACK}:{self.spec.port}", "log_level": 0})
        try:
            return bool(client.list_topics(timeout=METADATA_TIMEOUT_S).controller_id >= 0)
        except KafkaException:
            return False
