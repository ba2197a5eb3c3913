"""What all tests share: their order, a check that files are closed, and a Kafka node for those that ask for it."""

import gc
import uuid
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

# By itself pytest shows the values of a failed assertion only in test files. Some of our checks are in other modules.
pytest.register_assert_rewrite(*(f"tests.{one.name}" for one in Path(__file__).parent.iterdir() if one.is_dir()))

from brokers.launch.kafka.cluster import KafkaCluster, plain_specs
from brokers.launch.kafka.preparing import prepare
from cli.cluster.led_cluster import LedCluster
from tests.support.scheduling import ByFile, is_on_one_node, put_in_order
from tests.support.waiting import wait_until

# py4j waits with select(), which takes no descriptor above 1,023: if tests leak them, Spark hangs.
DESCRIPTORS_LEFT_MAX = 100
KAFKA_NODE = pytest.StashKey[KafkaCluster]()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile | None:
    """Run the tests of a file on one worker, in an order that keeps all busy."""
    return ByFile(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Spare Python's garbage collector what the collection of tests makes: half a million objects, which all stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the tests in order where several workers share them."""
    if hasattr(config, "workerinput"):
        put_in_order(items)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """End the shared Kafka node after its last test, where workers run its files one after the other.

    With the topics of a hundred buses it takes 1.5 % of a core for nothing.
    """
    yield
    is_last = is_on_one_node(item) and nextitem is not None and not is_on_one_node(nextitem)
    if is_last and hasattr(item.config, "workerinput") and KAFKA_NODE in item.config.stash:
        item.config.stash[KAFKA_NODE].kill()


@pytest.fixture(scope="module", autouse=True)
def descriptors_are_closed() -> Iterator[None]:
    """Fail a module that leaves many files open in its worker.

    When a JVM has ended, py4j's threads need a moment to see it and to close their sockets: one for each query it ran.
    Sockets in reference cycles are closed when Python collects garbage, which it does not while it only waits.
    """
    process = psutil.Process()
    before = process.num_fds()

    def are_closed() -> bool:
        if process.num_fds() - before <= DESCRIPTORS_LEFT_MAX:
            return True
        gc.collect()
        return False

    yield
    wait_until(are_closed, "descriptors to be closed")


@pytest.fixture(scope="session")
def kafka_node(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[KafkaCluster]:
    """A plain Kafka node, which ends with the last of its tests; every user of it takes a prefix of its own."""
    prepare()
    cluster = KafkaCluster.create(tmp_path_factory.mktemp("kafka"), plain_specs(1))
    request.config.stash[KAFKA_NODE] = cluster
    try:
        cluster.up()
        yield cluster
    finally:
        cluster.kill()


@pytest.fixture(scope="session")
def kafka_servers(kafka_node: KafkaCluster) -> str:
    """The address of the plain Kafka node."""
    return kafka_node.bootstrap


@pytest.fixture
def kafka_url(kafka_servers: str) -> str:
    """The URL of a bus for one test, on the plain Kafka node. The bus is yet to be made."""
    return f"kafka://{kafka_servers}/{uuid.uuid4().hex[:8]}"


@pytest.fixture
def cluster_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder for a cluster that ``isrflow cluster`` makes, plain or led. All its processes end with the test."""
    prepare()
    folder = tmp_path / "kafka"
    yield folder
    if (folder / "cluster.json").exists():
        cluster = KafkaCluster.open(folder)
        (LedCluster.open(cluster) or cluster).kill()
