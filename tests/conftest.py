"""What all tests share: their order, a check that files are closed, and servers for those that ask for them."""

import gc
import uuid
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psutil
import pytest
import structlog
from pyspark.sql import SparkSession

# By itself pytest shows the values of a failed assertion only in test files. Some of our checks are in other modules.
pytest.register_assert_rewrite(
    "bench", *(f"tests.{one.name}" for one in Path(__file__).parent.iterdir() if one.is_dir())
)

from brokers.launch.kafka.cluster import KafkaCluster, plain_specs
from brokers.launch.kafka.preparing import prepare
from cli.cluster.led_cluster import LedCluster
from conf.settings import Settings
from streaming.session import build_session, choose_java, end_session
from tests.support.scheduling import ByGroup, group, put_in_order
from tests.support.second_chance import Failures
from tests.support.waiting import wait_until

# py4j waits with select(), which takes no descriptor above 1,023: if tests leak them, Spark hangs.
DESCRIPTORS_LEFT_MAX = 100
JVM_END_TIMEOUT_S = 120.0


def pytest_configure(config: pytest.Config) -> None:
    """Keep which tests failed: ``tests/support/second_chance.py``."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Failures(config))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByGroup | None:
    """Run the tests of a group or a file on one worker, in an order that keeps all busy."""
    return ByGroup(config, log) if config.getoption("dist") == "loadgroup" else None


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
    group(items)
    if hasattr(config, "workerinput"):
        put_in_order(items)


@pytest.fixture(scope="session", autouse=True)
def _loggers_are_not_cached() -> Iterator[None]:
    """Let a test capture what a module logs, also after another one has configured logs as a program does."""
    configure = structlog.configure

    def without_cache(**given: Any) -> None:
        configure(**given | {"cache_logger_on_first_use": False})

    with patch.object(structlog, "configure", without_cache):
        yield


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
def kafka_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """A plain Kafka node. Every user of it takes a prefix of its own, and is marked ``kafka_bus``."""
    prepare()
    cluster = KafkaCluster.create(tmp_path_factory.mktemp("kafka"), plain_specs(1))
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


@pytest.fixture(scope="session")
def spark_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A Spark session in the tests' own process. A test that uses it is in the group ``spark_session``."""
    choose_java()
    session = build_session(Settings(), tmp_path_factory.mktemp("local"))
    yield session
    end_session(session, JVM_END_TIMEOUT_S)
