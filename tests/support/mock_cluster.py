"""Mock brokers as processes, on a bus on which some engine decides."""

import json
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from kafka.protocol.metadata import MetadataRequest

from bus.clock import now_ms
from bus.embedded import EmbeddedBus
from bus.image import view_of_image
from tests.support.freezing import freeze_process
from tests.support.raw import RawClient
from tests.support.rules_engine import RulesEngine
from tests.support.waiting import wait_until

# A process that starts on a busy machine takes long, and the engine may wait for the processor too.
START_TIMEOUT_S = 240.0
STOP_TIMEOUT_S = 120.0
DECIDE_TIMEOUT_S = 240.0
SETTINGS = ("broker.heartbeat.interval.ms=300", "replica.lag.time.max.ms=3000")


class MockCluster:
    """Brokers 1 to ``size`` under ``directory``, to start, stop and kill, and the bus that they follow."""

    def __init__(self, directory: Path, size: int = 3, settings: tuple[str, ...] = SETTINGS) -> None:
        self.directory = directory
        self.bus_path = directory / "bus.db"
        self.bus = EmbeddedBus(self.bus_path)
        self.brokers = tuple(range(1, size + 1))
        self._settings = settings
        # What runs a broker that is started from now on.
        self.python: tuple[str, ...] = (sys.executable,)
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, *brokers: int) -> None:
        """Start the brokers (all by default), and wait until each is unfenced under a new broker epoch."""
        starting = brokers or self.brokers
        before = self.active()
        for broker in starting:
            self.launch(broker)

        def unfenced() -> bool:
            now = self.active()
            return all(broker in now and now[broker] != before.get(broker) for broker in starting)

        wait_until(unfenced, f"brokers {starting} to be active", START_TIMEOUT_S)

    def launch(self, broker: int, folder: Path | None = None) -> None:
        """Start one broker, in its own folder or another, without waiting for it."""
        assert broker not in self._processes
        folder = folder or self.folder(broker)
        folder.mkdir(parents=True, exist_ok=True)
        sets = [part for setting in self._settings for part in ("--set", setting)]
        command = [*self.python, "-m", "brokers.mock", "--broker", str(broker), "--bus", str(self.bus_path)]
        with (self.directory / f"broker-{broker}.log").open("ab") as output:
            self._processes[broker] = subprocess.Popen(
                [*command, "--dir", str(folder), *sets], stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )

    def folder(self, broker: int) -> Path:
        return self.directory / f"broker-{broker}"

    def pid(self, broker: int) -> int:
        return self._processes[broker].pid

    def kill(self, broker: int) -> None:
        """SIGKILL a broker."""
        process = self._processes.pop(broker)
        process.kill()
        process.wait(STOP_TIMEOUT_S)

    def disown(self, broker: int) -> "subprocess.Popen[bytes]":
        """Let another process become this broker; return the present one, which the caller has to end."""
        return self._processes.pop(broker)

    def freeze(self, broker: int) -> None:
        """Stop a broker while it does not write to the bus."""
        freeze_process(self.bus_path, self.pid(broker))

    def thaw(self, broker: int) -> None:
        self._processes[broker].send_signal(signal.SIGCONT)

    def terminate(self, broker: int) -> int:
        """SIGTERM a broker, and return its exit code."""
        process = self._processes.pop(broker)
        process.terminate()
        return process.wait(STOP_TIMEOUT_S)

    def exit_code(self, broker: int) -> int:
        """Wait until a broker has ended by itself, and return its exit code."""
        return self._processes.pop(broker).wait(STOP_TIMEOUT_S)

    def stop(self) -> None:
        """Stop whatever still runs."""
        for broker in list(self._processes):
            self.thaw(broker)
            self.kill(broker)
        self.bus.close()

    # The engine's view

    def view(self) -> dict[str, Any]:
        return view_of_image(self.bus.image())

    def active(self) -> dict[int, int]:
        """Return the epochs of the brokers that are active."""
        return {b["broker"]: b["broker_epoch"] for b in self.view()["brokers"] if b["state"] == "active"}

    def partitions(self, topic: str) -> list[dict[str, Any]]:
        return [p for p in self.view()["partitions"] if p["topic"] == topic]

    def leader(self, topic: str, partition: int) -> int:
        return int(self.partitions(topic)[partition]["leader"])

    def wait_for_isr(self, topic: str, size: int, timeout_s: float = START_TIMEOUT_S) -> None:
        """Wait until every partition has a leader and ``size`` replicas in sync."""

        def grown() -> bool:
            partitions = self.partitions(topic)
            return bool(partitions) and all(len(p["isr"]) == size and p["leader"] >= 0 for p in partitions)

        wait_until(grown, f"{topic} to have {size} in sync", timeout_s)

    def publish(self, kind: str, **fields: object) -> None:
        """Publish an event, and wait for an answer without an error."""
        request_id = uuid.uuid4().hex
        event = {"kind": kind, "time_ms": now_ms(), "request_id": request_id, **fields}
        seq = self.bus.publish([msgspec.json.encode(event)])
        wait_until(lambda: self.bus.decided_seq() >= seq, f"{kind} to be decided", DECIDE_TIMEOUT_S)
        answers = [msgspec.json.decode(d.body) for d in self.bus.decisions((seq, -1), 1_000) if d.seq == seq]
        answer = next(a for a in answers if a["kind"] == "answer" and a["request_id"] == request_id)
        assert answer["error"] == "NONE", answer

    def create_topic(self, topic: str, assignment: dict[str, list[int]], **config: str) -> None:
        """Create a topic, and wait until all replicas are in sync and every broker knows the topic."""
        named = {name.replace("_", "."): value for name, value in config.items()}
        self.publish("create_topic", topic=topic, assignment=assignment, config=named)
        self.wait_for_isr(topic, len(assignment["0"]))
        wait_until(lambda: all(self._knows(broker, topic) for broker in self._processes), f"all to know {topic}")

    def _knows(self, broker: int, topic: str) -> bool:
        client = RawClient.to(self.folder(broker))
        asked = MetadataRequest.MetadataRequestTopic(name=topic)
        known = client.ask(MetadataRequest(version=9, topics=[asked])).topics[0]
        client.close()
        return bool(known.error_code == 0)

    # The clients' view

    def bootstrap(self) -> str:
        """Return the addresses of the brokers that run."""
        told = [json.loads((self.folder(b) / "broker.json").read_text()) for b in sorted(self._processes)]
        return ",".join(f"{one['host']}:{one['port']}" for one in told)


@contextmanager
def running_cluster(
    directory: Path, size: int = 3, settings: tuple[str, ...] = SETTINGS, **policy: object
) -> Iterator[MockCluster]:
    """Run brokers, and the rules with ``policy`` (Kafka's names, dots as underscores), until the block ends."""
    engine, cluster = RulesEngine(), MockCluster(directory, size, settings)
    engine.start(cluster.bus_path, **policy)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
        engine.stop()
