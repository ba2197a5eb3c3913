"""A bus whose engine, mock brokers and gateway are each of one of two releases, under load."""

import subprocess
import threading
from collections import Counter
from pathlib import Path

from brokers.launch.kafka.cluster import random_cluster_id
from brokers.launch.ports import free_ports
from bus.image import read_image
from tests.support.clients import ConfluentSender, lost_records, read_all
from tests.support.engine import START_TIMEOUT_S, STOP_TIMEOUT_S, Engine
from tests.support.mock_cluster import MockCluster
from tests.support.waiting import wait_until
from tests.upgrade.releases import Release

TOPIC, PARTITIONS = "orders", 3
PAUSE_S, RECORDS = 0.05, 40
# Engines that cost less processor time. A standby of a killed engine sees that it is dead, and does not wait until it
# was silent for so long, which happens to an engine on a busy machine.
SETTINGS = ("shuffle.partitions=1", "watermark.interval.ms=500", "controller.standby.timeout.ms=120000")
# Prints the answer to a request, and the level if a decision in the log says one.
PROGRAM = """
import sys, isrflow
with isrflow.connect(sys.argv[1]) as bus:
    asked = {"kind": "create_topic", "topic": sys.argv[2], "partitions": 1, "replication_factor": 3}
    print(bus.ask(asked)["error"], *(one["level"] for one in bus.decisions(kinds=["level"])))
"""


class Load:
    """Records that are sent from when this is made to ``end``."""

    def __init__(self, bootstrap: str) -> None:
        self._sender = ConfluentSender(bootstrap)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._send, daemon=True)
        self._thread.start()

    def _send(self) -> None:
        number = 0
        while not self._ended.wait(PAUSE_S):
            self._sender.send(TOPIC, number % PARTITIONS, str(number).encode())
            number += 1

    def check_goes_on(self) -> None:
        """Wait until more records are acknowledged."""
        enough = len(self._sender.acknowledged) + RECORDS
        wait_until(lambda: len(self._sender.acknowledged) >= enough, "records to be acknowledged")

    def end(self, bootstrap: str) -> None:
        """Send no more, and check that each acknowledged record can be read in its place, and none twice."""
        self._ended.set()
        self._thread.join(STOP_TIMEOUT_S)
        self._sender.finish(STOP_TIMEOUT_S)
        assert self._sender.failed == []
        read = read_all(bootstrap, TOPIC, PARTITIONS)
        assert lost_records(self._sender.acknowledged, read) == {}
        assert max(Counter(record.value for record in read).values()) == 1


class Site:
    """The processes on one bus. ``engine`` decides, and ``gateway`` leads."""

    def __init__(self, directory: Path, release: Release) -> None:
        self.directory = directory
        self.cluster = MockCluster(directory)
        self._cluster_id, self._port = random_cluster_id(), free_ports(1)[0]
        self._engines: list[Engine] = []
        self._gateway: subprocess.Popen[bytes] | None = None
        self.engine = self.start_engine(release)
        self.engine.wait_ready(self.cluster.bus)
        self.cluster.python = release.python
        self.cluster.start()
        self.cluster.create_topic(TOPIC, {str(one): [1, 2, 3] for one in range(PARTITIONS)}, min_insync_replicas="2")
        self.start_gateway(release)
        self.load = Load(self.cluster.bootstrap())

    def start_engine(self, release: Release, *options: str) -> Engine:
        """Start an engine without waiting for it."""
        log = self.directory / f"engine-{len(self._engines)}.log"
        command = (release.isrflow, "run", *options)
        engine = Engine(self.directory, *SETTINGS, command=command, log=log, cwd=self.directory)
        self._engines.append(engine)
        return engine

    def stand_by(self, engine: Engine) -> Engine:
        """Wait until a standby could take over, and return it."""
        wait_until(lambda: "standing by" in engine.log.read_text(), "a standby", START_TIMEOUT_S)
        return engine

    def take_over(self, engine: Engine) -> None:
        """Wait until an engine decides, and records are acknowledged under it."""
        wait_until(lambda: "claimed the controller" in engine.log.read_text(), "the engine to claim", START_TIMEOUT_S)
        engine.wait_ready(self.cluster.bus)
        self.engine = engine
        self.load.check_goes_on()

    def replace_brokers(self, release: Release, *brokers: int) -> None:
        """Stop brokers one by one, and start each again with a release on the same folder."""
        self.cluster.python = release.python
        for broker in brokers:
            assert self.cluster.terminate(broker) == 0
            self.cluster.start(broker)
            self.cluster.wait_for_isr(TOPIC, 3)
        self.load.check_goes_on()

    def launch_gateway(self, release: Release) -> subprocess.Popen[bytes]:
        """Start a gateway on the gateway's folder without waiting for it."""
        bus, log, voters = self.cluster.bus_path, self.directory / "gateway", f"100@127.0.0.1:{self._port}"
        if release.has_gateway_command:
            texts = ("node.id=100", f"controller.quorum.voters={voters}", f"cluster.id={self._cluster_id}")
            sets = [part for text in (*texts, f"metadata.log.dir={log}", "metrics.port=0") for part in ("--set", text)]
            command = [release.isrflow, "gateway", "kraft", "--bus", str(bus), *sets]
        else:
            who = ["--gateway", "100", "--voters", voters, "--cluster-id", self._cluster_id]
            command = [*release.python, "-m", "brokers.gateways.kraft", *who, "--bus", str(bus), "--dir", str(log)]
        with (self.directory / "gateway.log").open("ab") as output:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)

    def start_gateway(self, release: Release) -> None:
        """Start a gateway in place of the one that runs, and wait until it leads."""
        self.stop_gateway()
        before = self._quorum_epoch()
        self._gateway = gateway = self.launch_gateway(release)

        def leads() -> bool:
            assert gateway.poll() is None, (self.directory / "gateway.log").read_text()[-2000:]
            return self._quorum_epoch() > before

        wait_until(leads, "the gateway to lead", START_TIMEOUT_S)

    def stop_gateway(self) -> None:
        """Stop the gateway if one runs, and check that it ran until now."""
        if self._gateway is not None:
            self._gateway.terminate()
            assert self._gateway.wait(STOP_TIMEOUT_S) == 0, (self.directory / "gateway.log").read_text()[-2000:]
            self._gateway = None

    def _quorum_epoch(self) -> int:
        return read_image(self.cluster.bus.image()).cluster.quorum.quorum_epoch

    def command(self, release: Release, *arguments: str) -> tuple[int, str]:
        """Run a command; return its exit code and what it printed."""
        command = [release.isrflow, *arguments, "--set", f"bus=sqlite:{self.cluster.bus_path}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=STOP_TIMEOUT_S, cwd=self.directory)
        return done.returncode, done.stdout + done.stderr

    def program(self, release: Release, topic: str) -> str:
        """Create a topic with a release's package ``isrflow``; return the answer, and the levels that it reads."""
        command = [*release.python, "-c", PROGRAM, str(self.cluster.bus_path), topic]
        done = subprocess.run(command, capture_output=True, text=True, timeout=STOP_TIMEOUT_S, check=True)
        return done.stdout.strip()

    def end(self) -> None:
        """End all processes."""
        for engine in self._engines:
            engine.kill()
        if self._gateway is not None:
            self._gateway.kill()
            self._gateway.wait(STOP_TIMEOUT_S)
        self.cluster.stop()
