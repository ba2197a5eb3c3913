"""The demo's cluster: one engine and three mock brokers over one bus, all below one directory."""

import json
import socket
import sys
from pathlib import Path

import msgspec

from isrflow.bus.embedded import EmbeddedBus, now_ms
from isrflow.cli.demo.processes import Process

BROKERS = (1, 2, 3)
HOST = "127.0.0.1"
TIMES = ("broker.session.timeout.ms=3000", "broker.heartbeat.interval.ms=500")
# Few partitions need few shards, and few shards make short micro-batches.
SIZES = ("shards=2", "pages=4", "driver.memory=512m")


class DemoCluster:
    """Start and end the processes of the demo."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.bus = EmbeddedBus(directory / "bus.db")
        self.metrics_port = _free_port()
        self._processes: dict[str, Process] = {}

    @property
    def processes(self) -> list[Process]:
        return list(self._processes.values())

    def start_engine(self) -> None:
        sets = (
            *(f"bus=sqlite:{self.bus.path}", f"checkpoint.dir={self.directory / 'checkpoint'}"),
            *(f"metrics.port={self.metrics_port}", f"metrics.host={HOST}", "log.format=console"),
            *(*TIMES, *SIZES),
        )
        command = [sys.executable, "-c", "from isrflow.cli import main; main()", "run"]
        self._start("engine", [*command, *(part for text in sets for part in ("--set", text))])

    def start_broker(self, broker: int) -> None:
        self._file(broker).unlink(missing_ok=True)
        command = [sys.executable, "-m", "isrflow.brokers.mock", "--broker", str(broker), "--bus", str(self.bus.path)]
        sets = [part for text in TIMES for part in ("--set", text)]
        self._start(f"broker {broker}", [*command, "--dir", str(self._file(broker).parent), "--host", HOST, *sets])

    def _start(self, name: str, command: list[str]) -> None:
        log = self.directory / f"{name.replace(' ', '-')}.log"
        self._processes[name] = Process(name, command, log)

    def kill_broker(self, broker: int) -> None:
        self._processes[f"broker {broker}"].kill()

    def check(self) -> None:
        """Raise ``DemoError`` when any process has ended by itself."""
        for process in self.processes:
            process.check()

    def _file(self, broker: int) -> Path:
        directory = self.directory / f"broker-{broker}"
        directory.mkdir(exist_ok=True)
        return directory / "broker.json"

    def bootstrap_servers(self) -> list[str]:
        """List where the brokers listen, of those that do."""
        files = [self._file(broker) for broker in BROKERS]
        return [f"{HOST}:{json.loads(file.read_text())['port']}" for file in files if file.exists()]

    def create_topic(self, topic: str, partitions: int, min_isr: int, request_id: str) -> None:
        self.bus.publish(
            [
                msgspec.json.encode(
                    {
                        "kind": "create_topic",
                        "time_ms": now_ms(),
                        "request_id": request_id,
                        "topic": topic,
                        "partitions": partitions,
                        "replication_factor": len(BROKERS),
                        "config": {"min.insync.replicas": str(min_isr)},
                    }
                )
            ]
        )

    def stop(self) -> None:
        """End all processes at once: what they would still put in order is thrown away with the directory."""
        for process in self.processes:
            process.kill()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
