"""A demo cluster of mock brokers."""

import json
from pathlib import Path

import msgspec

from brokers.launch.service import Service
from bus.clock import now_ms
from cli.cluster.engine import EngineProcess
from cli.demo.cluster import BROKERS, HOST, DemoCluster
from conf.python import PYTHON

TIMES = ("broker.session.timeout.ms=3000", "broker.heartbeat.interval.ms=500")


class MockBroker(Service):
    """The process of one mock broker. ``port`` is known once it listens."""

    def __init__(self, broker: int, bus: Path, folder: Path) -> None:
        super().__init__(f"broker {broker}", folder, "broker.log")
        self._broker = broker
        self._bus = bus
        self._address_file = self.folder / "broker.json"

    def command(self) -> list[str]:
        self._address_file.unlink(missing_ok=True)
        sets = [part for text in TIMES for part in ("--set", text)]
        command = [*PYTHON, "-m", "brokers.mock", "--broker", str(self._broker), "--bus", str(self._bus)]
        return [*command, "--dir", str(self.folder), "--host", HOST, *sets]

    def is_ready(self) -> bool:
        return self._address_file.exists()

    @property
    def port(self) -> int:
        return int(json.loads(self._address_file.read_text())["port"])


class MockDemoCluster(DemoCluster):
    """An engine and three mock brokers."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, directory / "bus.db")
        self._engine = EngineProcess(directory / "engine", self.bus.path, self.engine_settings(TIMES))
        self._brokers = {
            broker: MockBroker(broker, self.bus.path, directory / f"broker-{broker}") for broker in BROKERS
        }

    def start(self) -> None:
        """Start the engine and all brokers, without waiting until they are ready."""
        for service in (self._engine, *self._brokers.values()):
            self.start_service(service)

    def wait_until_started(self) -> None:
        """Wait until every broker serves clients."""
        for broker in self._brokers.values():
            broker.wait_until_started()

    def broker(self, broker: int) -> Service:
        return self._brokers[broker]

    def bootstrap_servers(self) -> list[str]:
        return [f"{HOST}:{broker.port}" for broker in self._brokers.values() if broker.is_ready()]

    def create_topic(self, topic: str, partitions: int, min_isr: int) -> None:
        event = {
            "kind": "create_topic",
            "time_ms": now_ms(),
            "topic": topic,
            "partitions": partitions,
            "replication_factor": len(BROKERS),
            "config": {"min.insync.replicas": str(min_isr)},
        }
        self.bus.publish([msgspec.json.encode(event)])
