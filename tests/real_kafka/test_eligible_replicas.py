"""Brokers go one by one until none is left, and return in some order: nothing acknowledged is lost.

A broker that was stopped has every committed record, and leads as soon as it is back. A broker that was killed may have
lost the end of its log, so another one is waited for.
"""

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

import pytest
from click.testing import CliRunner
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from brokers.launch.kafka.cluster import KafkaCluster
from brokers.launch.kafka.tools import TOPICS, run_tool
from bus.image import read_image
from cli.commands import command
from conf.kafka_versions import KAFKA_VERSION, KAFKA_VERSIONS
from state.decisions import encode
from state.entity import FEATURES as LEVELS
from state.events import AlterEntity, RaiseLevel
from state.features import METADATA_VERSION, METADATA_VERSIONS
from state.level import NEWEST_LEVEL
from tests.support.clients import ConfluentSender, lost_records, read_all
from tests.support.real_cluster import LOOPBACK, OVERRIDES, POLICY, RealCluster
from tests.support.rules_engine import RulesEngine
from tests.support.stock_quorum import StockQuorum
from tests.support.waiting import TIMEOUT_S, wait_until

pytestmark = pytest.mark.kraft
*_, NEWEST = KAFKA_VERSIONS
REPLICAS = ([1, 2, 3], [2, 3, 1], [3, 1, 2])
RECORDS = 30
# After this time a controller has fenced a broker that is gone.
FENCED_AFTER_S = POLICY["broker_session_timeout_ms"] / 1000 + 2.0
Way = Literal["killed", "stopped"]
Going = Sequence[tuple[int, Way]]


class Described(NamedTuple):
    """One partition as ``kafka-topics`` or ``isrflow topics describe`` shows it. Lists are sets."""

    leader: str
    isr: str
    elr: str
    last_known_elr: str


class Place(NamedTuple):
    """A running cluster, and how it is described by those who lead it, if isrflow does."""

    kafka: KafkaCluster
    of_engine: Callable[[str], list[Described]] | None = None

    @property
    def bootstrap(self) -> str:
        """The addresses of the brokers that run."""
        nodes = [node for node in self.kafka.nodes.values() if node.state == "running" and "broker" in node.spec.roles]
        return ",".join(f"{LOOPBACK}:{node.spec.port}" for node in nodes)

    def described(self, topic: str) -> list[Described]:
        """Describe a topic by Kafka's tool."""
        return told_in(run_tool(TOPICS, self.bootstrap, ["--describe", "--topic", topic]))

    def wait_until(self, topic: str, holds: Callable[[Described], bool]) -> None:
        """Wait until something holds for each partition as its controller sees it."""
        look = self.of_engine or self.described
        wait_until(lambda: all(map(holds, look(topic))), f"{topic} to be as expected")

    def settled(self, topic: str) -> list[Described]:
        """Wait until Kafka's tool describes a topic as the engine does, or else twice alike."""
        look = self.of_engine or self.described
        found: list[list[Described]] = []

        def is_settled() -> bool:
            found[:] = [look(topic), self.described(topic)]
            return found[0] == found[1]

        wait_until(is_settled, f"{topic} to be described alike")
        return found[1]


def told_in(text: str) -> list[Described]:
    """Read the lines of partitions."""
    rows = [line.split("\t") for line in text.splitlines() if "\tPartition: " in line]
    fields = [{name.strip(): value.strip() for name, _, value in (one.partition(":") for one in row)} for row in rows]
    return [
        Described(one["Leader"], *(",".join(sorted(one[name].split(","))) for name in ("Isr", "Elr", "LastKnownElr")))
        for one in fields
    ]


@contextmanager
def led(folder: Path, version: str) -> Iterator[Place]:
    """Run three brokers behind a gateway, whose log begins with eligible leader replicas."""
    cluster = RealCluster(folder, version=version)
    metadata_version = METADATA_VERSIONS[KAFKA_VERSIONS[version].release]
    chosen = AlterEntity(time_ms=0, entity_type=LEVELS, names={}, values={METADATA_VERSION: metadata_version})
    engine = RulesEngine()
    engine.start(cluster.bus_path, **POLICY)
    try:
        cluster.bus.publish([encode(RaiseLevel(time_ms=0, level=NEWEST_LEVEL)), encode(chosen)])
        wait_until(lambda: read_image(cluster.bus.image()).cluster.level == NEWEST_LEVEL, "the level to be raised")
        cluster.start()

        def of_engine(topic: str) -> list[Described]:
            shown = CliRunner().invoke(command, ["topics", "describe", topic, "--bus", str(cluster.bus_path)])
            return told_in(shown.stdout)

        yield Place(cluster.kafka, of_engine)
    finally:
        cluster.stop()
        engine.stop()


@contextmanager
def stock(folder: Path, version: str) -> Iterator[Place]:
    """Run three brokers behind a controller of Kafka, with its defaults."""
    session = {"broker.session.timeout.ms": str(POLICY["broker_session_timeout_ms"])}
    with StockQuorum(folder, brokers=3, version=version, of_controllers=session, of_brokers=OVERRIDES) as quorum:
        yield Place(quorum.cluster)


def all_go_and_return(place: Place, topic: str, going: Going, back: Sequence[int]) -> list[list[Described]]:
    """Let brokers go until none is in sync and return; check that no acknowledged record is lost.

    Records come before each broker goes, so the last ones are acknowledged only when two are back. Returns how the
    topic was described after each return.
    """
    nodes, bootstrap = place.kafka.nodes, place.bootstrap
    new = NewTopic(topic, len(REPLICAS), replica_assignment=[*REPLICAS], config={"min.insync.replicas": "2"})
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    admin.create_topics([new])[topic].result(TIMEOUT_S)
    sender, numbers, left = ConfluentSender(bootstrap), itertools.count(), [1, 2, 3]
    for broker, way in going:
        # A broker that was held up may be fenced for a while.
        place.wait_until(topic, lambda one: one.isr == ",".join(map(str, left)))
        for number in itertools.islice(numbers, RECORDS):
            sender.send(topic, number % len(REPLICAS), b"%d" % number)
        nodes[broker].kill() if way == "killed" else nodes[broker].stop()
        left.remove(broker)
    if place.of_engine:
        place.wait_until(topic, lambda one: one.isr == "")
    else:
        time.sleep(FENCED_AFTER_S)
    steps = []
    for broker in back:
        nodes[broker].start()
        nodes[broker].wait_until_started()
        steps.append(place.settled(topic))
    place.wait_until(topic, lambda one: one[1:] == ("1,2,3", "", ""))
    sender.finish(TIMEOUT_S)
    assert sender.failed == [] and len(sender.acknowledged) == RECORDS * len(going)
    assert lost_records(sender.acknowledged, read_all(place.bootstrap, topic, len(REPLICAS))) == {}
    return steps


def test_the_eligible_one_is_waited_for_and_leads(tmp_path: Path) -> None:
    with led(tmp_path, KAFKA_VERSION) as place:
        going: Going = [(1, "killed"), (2, "stopped"), (3, "killed")]
        waits, leads, _ = all_go_and_return(place, "t", going, [3, 2, 1])
        assert waits == [Described("none", "", "2", "3")] * len(REPLICAS)
        assert {one.leader for one in leads} == {"2"}


@pytest.mark.long
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("leading", [led, stock])
def test_all_are_killed_or_stopped_and_return_in_any_order(leading: Callable[..., object], tmp_path: Path) -> None:
    with leading(tmp_path, NEWEST) as place:
        for way, back in itertools.product(("killed", "stopped"), itertools.permutations((1, 2, 3))):
            name = f"{way}-{''.join(map(str, back))}"
            steps = all_go_and_return(place, name, [(1, way), (2, way), (3, way)], back)
            print(name, *(sorted({*step}) for step in steps), sep="\n    ")
