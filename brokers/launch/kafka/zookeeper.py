"""A ZooKeeper server as a process on this machine, for brokers of Kafka 3.9."""

import re
import socket
from collections.abc import Iterable
from pathlib import Path

from brokers.launch.kafka.java_properties import properties_text
from brokers.launch.kafka.node import java_command
from brokers.launch.kafka.properties import LOOPBACK, log_properties
from brokers.launch.service import Service
from conf.kafka_versions import KAFKA_VERSIONS, ZOOKEEPER_KAFKA_VERSION
from conf.private_dir import private_dir

_CONNECT_TIMEOUT_S = 2.0
# Plenty: a session takes some hundred bytes.
_ANSWER_BYTES_MAX = 1024 * 1024
_CHUNK_BYTES = 64 * 1024
# Sessions last 2 to 20 ticks.
TICK_MS = 1_000
# A session ends within a tick after its time. A server that has just started gives all sessions their whole time again.
SESSIONS_END_TIMEOUT_S = 60.0
# The title of what ``dump`` lists.
_EPHEMERAL_NODES = b"ephemeral nodes dump"
_BROKER = re.compile(rb"^\s*/brokers/ids/(\d+)\s*$", re.MULTILINE)


class ZookeeperProcess(Service):
    """One server, with its files in ``folder``. It listens at ``host``, an address of this machine."""

    def __init__(self, port: int, folder: Path, host: str = LOOPBACK) -> None:
        super().__init__("zookeeper", folder, "zookeeper.log", "console.log")
        self.host = host
        self.port = port
        self._properties = self.folder / "zookeeper.properties"
        self._log_properties = self.folder / "log4j.properties"

    @property
    def address(self) -> str:
        """The server's address as ``zookeeper.connect`` has it."""
        return f"{self.host}:{self.port}"

    def command(self) -> list[str]:
        private_dir(self.folder)
        settings = {
            "dataDir": str(self.folder / "data"),
            "clientPort": str(self.port),
            "clientPortAddress": self.host,
            "admin.enableServer": "false",
            "tickTime": str(TICK_MS),
            "maxClientCnxns": "0",
            "4lw.commands.whitelist": "dump",
            "autopurge.purgeInterval": "1",
        }
        self._properties.write_text(properties_text(settings))
        self._log_properties.write_text(log_properties(self.log_file))
        java = java_command(KAFKA_VERSIONS[ZOOKEEPER_KAFKA_VERSION], "256m", None, self._log_properties)
        return [*java, "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(self._properties)]

    def is_ready(self) -> bool:
        """Return whether the server serves. Before that it already answers ``ruok``, but knows no sessions."""
        return self.brokers_with_session() is not None

    def brokers_with_session(self) -> set[int] | None:
        """Return the brokers whose sessions have not ended, running or not; None if the server does not answer."""
        answer = self._answer(b"dump")
        return set(map(int, _BROKER.findall(answer))) if _EPHEMERAL_NODES in answer else None

    def wait_until_sessions_end(self, brokers: Iterable[int]) -> None:
        """Wait until the sessions of brokers that do not run have ended. Raises ``ServiceError``.

        A broker that starts during its former session finds its znode taken, and ends.
        """
        gone = frozenset(brokers)

        def have_ended() -> bool:
            found = self.brokers_with_session()
            return found is not None and not gone & found

        complaint = "did not end the sessions of brokers that were killed"
        self.wait_until(have_ended, SESSIONS_END_TIMEOUT_S, complaint)

    def _answer(self, word: bytes) -> bytes:
        """Send one of ZooKeeper's four-letter words, and return the answer; empty if there is none."""
        answer = b""
        try:
            with socket.create_connection((self.host, self.port), _CONNECT_TIMEOUT_S) as connection:
                connection.settimeout(_CONNECT_TIMEOUT_S)
                connection.sendall(word)
                while len(answer) < _ANSWER_BYTES_MAX and (more := connection.recv(_CHUNK_BYTES)):
                    answer += more
        except OSError:
            return b""
        return answer
