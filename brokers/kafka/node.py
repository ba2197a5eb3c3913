"""One Kafka node: its folder, its storage, its process."""

import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from isrflow.brokers.kafka.process import DetachedProcess, State
from isrflow.brokers.kafka.properties import NodeSpec, log_dirs, log_properties, server_properties
from isrflow.conf.jars import jars
from isrflow.conf.java import java_home

FORMAT_TIMEOUT_S = 120.0
START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 60.0
LOG_LINES_SHOWN = 8
_POLL_S = 0.05
_TAIL_BYTES = 1 << 16
# What a node says when everything of it runs, which for a broker includes that it was unfenced.
_STARTED = b"Kafka Server started"
# A quick start matters more on a small machine than the last word in speed.
_JVM_FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true")


class KafkaError(Exception):
    """A node or cluster that does not do what it was asked; the message says where its log is."""


class KafkaNode:
    """Format, start and stop one node; its files are under ``folder``, which need not exist yet."""

    def __init__(self, spec: NodeSpec, folder: Path, brokers: int = 1) -> None:
        self.spec = spec
        self.folder = folder
        self.log = folder / "server.log"
        self.console = folder / "console.log"
        self._brokers = brokers
        self._properties = folder / "server.properties"
        self._log_properties = folder / "log4j.properties"
        self._process = DetachedProcess(folder / "process.json")
        self._log_from = 0

    @property
    def name(self) -> str:
        return f"{'+'.join(self.spec.roles)} {self.spec.node_id}"

    @property
    def data(self) -> list[Path]:
        """Name the node's log directories."""
        return log_dirs(self.spec, self.folder)

    @property
    def state(self) -> State:
        return self._process.state

    @property
    def pid(self) -> int | None:
        return self._process.pid

    def write_properties(self) -> None:
        """Write the files that the node reads at its start. Raises ``ValueError`` or OSError."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._properties.write_text(server_properties(self.spec, self.folder, self._brokers))
        self._log_properties.write_text(log_properties(self.log))

    def format(self, cluster_id: str) -> None:
        """Make the node's storage, where that was not done before.

        Raises ``KafkaError``, ``JarsError`` or ``JavaError``.
        """
        self.write_properties()
        if all((folder / "meta.properties").exists() for folder in self.data):
            return
        tool = ("kafka.tools.StorageTool", "format", "--ignore-formatted")
        command = [*self._java("256m"), *tool, "--cluster-id", cluster_id, "--config", str(self._properties)]
        try:
            done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=FORMAT_TIMEOUT_S)
        except subprocess.TimeoutExpired as error:
            raise KafkaError(f"{self.name}: its storage was not formatted in {FORMAT_TIMEOUT_S:.0f} s") from error
        if done.returncode != 0:
            raise KafkaError(
                f"{self.name}: its storage cannot be formatted: {done.stdout.strip()} {done.stderr.strip()}"
            )

    def start(self) -> None:
        """Start the process; it need not be ready yet. Raises ``KafkaError``, ``JarsError`` or ``JavaError``."""
        if self.state != "stopped":
            raise KafkaError(f"{self.name} is there already, as process {self.pid}")
        self.write_properties()
        self._log_from = self.log.stat().st_size if self.log.exists() else 0
        command = [*self._java(self.spec.heap), "kafka.Kafka", str(self._properties)]
        self._process.start(command, self.folder, self.console)

    def _java(self, heap: str) -> Iterator[str]:
        class_path = ":".join(map(str, jars("kafka-broker")))
        yield from (str(java_home() / "bin" / "java"), f"-Xmx{heap}", *_JVM_FLAGS)
        yield from (f"-Dlog4j.configuration=file:{self._log_properties}", "-cp", class_path)

    def wait_until_started(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Wait until the node says that all of it runs. Raises ``KafkaError`` when it ends or the time is over."""
        end = time.monotonic() + timeout_s
        while not self._says_started():
            if self.state == "stopped":
                raise KafkaError(f"{self.name} ended by itself; its log {self.log} ends with:\n{self.last_lines()}")
            if time.monotonic() > end:
                raise KafkaError(f"{self.name} did not start in {timeout_s:.0f} s; its log is {self.log}")
            time.sleep(_POLL_S)

    def _says_started(self) -> bool:
        if not self.log.exists():
            return False
        with self.log.open("rb") as file:
            # A log that was rolled meanwhile is shorter than it was, and is read from its beginning.
            file.seek(self._log_from if self.log.stat().st_size >= self._log_from else 0)
            return _STARTED in file.read()

    def last_lines(self) -> str:
        """Return the end of what the node wrote, for a message."""
        lines: list[str] = []
        for path in (self.log, self.console):
            if path.exists():
                with path.open("rb") as file:
                    file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
                    lines += file.read().decode(errors="replace").splitlines()[-LOG_LINES_SHOWN:]
        return "\n".join(lines)

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> bool:
        """Let the node stop in order; after the time-out end it at once, and return False."""
        self.resume()
        self._process.signal(signal.SIGTERM)
        if self._process.wait(timeout_s):
            return True
        self.kill()
        return False

    def terminate(self) -> None:
        """Ask the node to stop, and do not wait for it."""
        self._process.signal(signal.SIGTERM)

    def kill(self) -> None:
        """End the node at once, as a crash would."""
        self._process.kill()

    def pause(self) -> None:
        """Freeze the node; its connections stay open and nobody answers."""
        self._process.signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a frozen node go on."""
        self._process.signal(signal.SIGCONT)
