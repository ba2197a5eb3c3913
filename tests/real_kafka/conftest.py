"""What tests of real brokers share: a ZooKeeper, in which each takes a root of its own, and an engine to come."""

from collections.abc import Iterator

import pytest

from brokers.launch.kafka.preparing import prepare
from brokers.launch.kafka.zookeeper import ZookeeperProcess
from brokers.launch.ports import free_ports
from conf.kafka_versions import ZOOKEEPER_KAFKA_VERSION
from tests.support.rules_engine import RulesEngine


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZookeeperProcess]:
    prepare(ZOOKEEPER_KAFKA_VERSION)
    server = ZookeeperProcess(free_ports(1)[0], tmp_path_factory.mktemp("zookeeper"))
    server.start()
    try:
        server.wait_until_started()
        yield server
    finally:
        server.kill()


@pytest.fixture
def next_engine() -> Iterator[RulesEngine]:
    """The rules, not started yet."""
    engine = RulesEngine()
    yield engine
    engine.stop()
