"""A ZooKeeper server as a process on this machine, for brokers of Kafka 3.9."""

import socket
from pathlib import Path

from brokers.launch.kafka.node import JVM_FLAGS, class_archive
from brokers.launch.kafka.properties import LOOPBACK, log_properties
from brokers.launch.service import Service
from conf.jars import jars
from conf.java import java_home
from conf.kafka_versions import KAFKA_VERSIONS, ZOOKEEPER_KAFKA_VERSION
from conf.private_dir import private_dir

_CONNECT_TIMEOUT_S = 2.0
_ANSWER_BYTES_MAX = 64
# Sessions last 2 to 20 ticks, so at most 20 s.
TICK_MS = 1_000


class ZookeeperProcess(Service):
    """One server, with its files in ``folder``."""

    def __init__(self, port: int, folder: Path) -> None:
        super().__init__("zookeeper", folder, "zookeeper.log", "console.log")
        self.port = port
        self._properties = self.folder / "zookeeper.properties"
        self._log_properties = self.folder / "log4j.properties"

    @property
    def address(self) -> str:
        """Return the server's address as ``zookeeper.connect`` has it."""
        return f"{LOOPBACK}:{self.port}"

    def command(self) -> list[str]:
        private_dir(self.folder)
        settings = {
            "dataDir": str(self.folder / "data"),
            "clientPort": str(self.port),
            "clientPortAddress": LOOPBACK,
            "admin.enableServer": "false",
            "tickTime": str(TICK_MS),
            "maxClientCnxns": "0",
            "4lw.commands.whitelist": "ruok",
            "autopurge.purgeInterval": "1",
        }
        self._properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        self._log_properties.write_text(log_properties(self.log_file))
        class_path = ":".join(map(str, jars(KAFKA_VERSIONS[ZOOKEEPER_KAFKA_VERSION].jars)))
        home = java_home()
        flags = (*JVM_FLAGS, *class_archive(ZOOKEEPER_KAFKA_VERSION, home).options)
        java = [str(home / "bin" / "java"), "-Xmx256m", "-Djava.awt.headless=true", *flags]
        program = ("org.apache.zookeeper.server.quorum.QuorumPeerMain", str(self._properties))
        return [*java, f"-Dlog4j.configuration=file:{self._log_properties}", "-cp", class_path, *program]

    def is_ready(self) -> bool:
        """Say whether the server answers."""
        try:
            with socket.create_connection((LOOPBACK, self.port), _CONNECT_TIMEOUT_S) as connection:
                connection.settimeout(_CONNECT_TIMEOUT_S)
                connection.sendall(b"ruok")
                return connection.recv(_ANSWER_BYTES_MAX) == b"imok"
        except OSError:
            return False
