"""``isrflow shadow run`` beside a stock cluster: the state on its bus is that of the cluster."""

import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from brokers.wire.metadata.topic import METADATA_DIRECTORY
from bus.embedded import EmbeddedBus
from bus.image import read_image
from state.cluster import Cluster
from state.observed_events import BESIDE_THE_LOG
from tests.support.rules_engine import RulesEngine
from tests.support.stock_quorum import StockQuorum
from tests.support.waiting import TIMEOUT_S, wait_until

pytestmark = pytest.mark.kraft
CONTROLLER = 101
SMALL = {
    "metadata.log.max.record.bytes.between.snapshots": "1500",
    "metadata.max.retention.bytes": "5000",
    "metadata.max.idle.interval.ms": "50",
    "internal.metadata.log.segment.bytes": "2000",
}
# In the controller's file, and in no metadata log.
FILE = {"unclean.leader.election.enable": "true"}
# Topic, partition: leader, ISR.
Led = dict[tuple[str, int], tuple[int, tuple[int, ...]]]


def of_file(key: str, value: str) -> dict[str, str]:
    return {"entity_type": "controller", "entity": str(CONTROLLER), "key": key, "value": value}


class ShadowProcess:
    """The command, in a process of its own."""

    def __init__(self, stock: StockQuorum, bus: Path, *options: str) -> None:
        servers = ",".join(map(str, stock.endpoints))
        program = [sys.executable, "-P", "-m", "cli", "shadow", "run", "--bootstrap", servers, "--bus", str(bus)]
        self._process = subprocess.Popen([*program, *options], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def stop(self) -> None:
        """Stop it as a supervisor does."""
        self._process.terminate()
        _, said = self._process.communicate(timeout=TIMEOUT_S)
        assert self._process.returncode == 0, said.decode()

    def refusal(self) -> tuple[int, str]:
        """Wait for its end, and return its exit code and last line."""
        _, said = self._process.communicate(timeout=TIMEOUT_S)
        return self._process.returncode, said.decode().splitlines()[-1]

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(TIMEOUT_S)


class Observed:
    """A stock cluster, its shadow, and an engine on the shadow's bus."""

    def __init__(self, stock: StockQuorum, folder: Path) -> None:
        self.stock = stock
        self.path = folder / "shadow.db"
        self.bus = EmbeddedBus(self.path)
        self.admin = AdminClient({"bootstrap.servers": stock.cluster.bootstrap})
        self.shadow: ShadowProcess | None = None

    def start(self, *options: str) -> ShadowProcess:
        self.shadow = ShadowProcess(self.stock, self.path, *options)
        return self.shadow

    def create(self, topic: str) -> None:
        for done in self.admin.create_topics([NewTopic(topic, 3, 2)]).values():
            done.result(TIMEOUT_S)
        wait_until(lambda: (topic, 0) in self.led(), "brokers to know the topic")

    def delete(self, topic: str) -> None:
        for done in self.admin.delete_topics([topic]).values():
            done.result(TIMEOUT_S)
        wait_until(lambda: (topic, 0) not in self.led(), "brokers to forget the topic")

    def led(self) -> Led:
        """Return what the cluster tells its clients."""
        topics = self.admin.list_topics(timeout=TIMEOUT_S).topics
        return {
            (name, number): (partition.leader, tuple(sorted(partition.isrs)))
            for name, topic in topics.items()
            for number, partition in topic.partitions.items()
        }

    def shadowed(self) -> Led:
        """Return what the engine's state says."""
        topics = read_image(self.bus.image()).topics
        return {
            (topic.topic, one.partition): (one.leader, tuple(sorted(one.isr)))
            for topic in topics
            for one in topic.partitions
        }

    def wait_until_equal(self, what: str) -> None:
        wait_until(lambda: self.shadowed() == self.led(), f"the shadow's state to be the cluster's: {what}")

    def cluster(self) -> Cluster:
        return read_image(self.bus.image()).cluster

    def lag_ms(self) -> int:
        cluster = self.cluster()
        lag_ms = cluster.shadow and cluster.shadow.lag_ms(cluster.clock_ms)
        return -1 if lag_ms is None else lag_ms

    def observed(self) -> list[dict[str, Any]]:
        """Return the operations on the bus."""
        return [event for event in self._events() if event["cause"] not in BESIDE_THE_LOG]

    def beside(self, cause: str) -> list[dict[str, Any]]:
        """Return what the shadow told besides the log."""
        return [event for event in self._events() if event["cause"] == cause]

    def _events(self) -> list[dict[str, Any]]:
        events = [msgspec.json.decode(one.raw) for one in self.bus.read(0, self.bus.last_seq())]
        return [event for event in events if event["kind"] == "observed"]

    def close(self) -> None:
        if self.shadow is not None:
            self.shadow.kill()
        self.bus.close()


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StockQuorum]:
    with StockQuorum(tmp_path_factory.mktemp("stock") / "kafka", brokers=2, of_controllers=FILE) as stock:
        yield stock


@pytest.fixture
def observed(stock: StockQuorum, tmp_path: Path, next_engine: RulesEngine) -> Iterator[Observed]:
    observed = Observed(stock, tmp_path)
    next_engine.start(observed.path)
    yield observed
    observed.close()


def test_the_state_is_that_of_the_cluster(observed: Observed) -> None:
    log = observed.stock.node(CONTROLLER).log_file
    shadow = observed.start("--controller-log", str(log), "--metrics-port", "0")
    observed.create("first")
    observed.wait_until_equal("a topic")
    told = [one["results"]["settings"] for one in observed.beside("static_settings")]
    assert told == [[of_file("min.insync.replicas", "1"), of_file("unclean.leader.election.enable", "true")]]
    assert observed.cluster().policy.unclean_leader_election_enable
    wait_until(lambda: observed.beside("no_change") != [], "the shadow to tell that it goes on")
    wait_until(lambda: 0 <= observed.lag_ms() < 2_000, "a small lag of a cluster at rest")
    broker = observed.stock.node(2)
    broker.kill()
    wait_until(lambda: observed.observed()[-1]["cause"] == "session_expired", "the broker's fence")
    fence = observed.observed()[-1]
    assert fence["certainty"] == "certain"
    assert fence["evidence"]["broker"] == 2
    assert "because its session has timed out" in fence["evidence"]["log_line"]
    assert fence["evidence"]["silent_ms"] > 2_500
    observed.wait_until_equal("a dead broker")
    broker.start()
    broker.wait_until_started()
    wait_until(lambda: set(observed.led().values()) >= {(1, (1, 2))}, "the broker's return")
    observed.wait_until_equal("a broker that is back")
    # What happens while it is away is read afterwards, and nothing twice.
    shadow.stop()
    observed.create("second")
    observed.start()
    observed.wait_until_equal("a topic that was created meanwhile")
    operations = observed.observed()
    assert [one["cause"] for one in operations].count("topic_created") == 2
    assert all(before["last_offset"] < after["offset"] for before, after in pairwise(operations))
    assert {one["cluster_id"] for one in operations} == {observed.stock.cluster.cluster_id}
    observed.delete("first")
    observed.wait_until_equal("a deleted topic")


def test_only_a_bus_of_its_own_will_do(stock: StockQuorum, tmp_path: Path) -> None:
    path = tmp_path / "led.db"
    bus = EmbeddedBus(path)
    bus.publish([b'{"kind":"broker_register","time_ms":1000,"broker":1,"incarnation":"a"}'])
    code, said = ShadowProcess(stock, path).refusal()
    assert (code, bus.last_seq()) == (2, 1)
    assert "the bus of a cluster that is led on it: expected a new bus" in said
    bus.close()


def test_a_broker_is_no_controller(stock: StockQuorum, tmp_path: Path) -> None:
    shadow = ShadowProcess(stock, tmp_path / "a.db", "--bootstrap", stock.cluster.bootstrap.split(",")[0])
    code, said = shadow.refusal()
    assert code == 2
    assert "is a broker's listener" in said and "expected the listener of a controller" in said


def test_what_went_away_while_records_were_missed_goes(tmp_path: Path, next_engine: RulesEngine) -> None:
    with StockQuorum(tmp_path / "kafka", brokers=2, of_controllers=SMALL) as stock:
        observed = Observed(stock, tmp_path)
        next_engine.start(observed.path)
        try:
            shadow = observed.start()
            observed.create("first")
            observed.create("second")
            observed.wait_until_equal("two topics")
            shadow.stop()
            observed.delete("first")
            folder = stock.node(CONTROLLER).data[0] / METADATA_DIRECTORY
            newest = max(folder.glob("*-*.checkpoint"))
            wait_until(lambda: not newest.exists(), "the removal of the newest snapshot that the shadow may know")
            observed.start()
            wait_until(lambda: observed.observed()[-1]["cause"] == "gap", "a gap")
            observed.wait_until_equal("a gap")
            assert {topic for topic, _ in observed.shadowed()} == {"second"}
        finally:
            observed.close()
