"""A ZooKeeper for those that ask for it. Each user of it takes a root of its own."""

from collections.abc import Iterator

import pytest

from brokers.launch.kafka.zookeeper import ZookeeperProcess
from brokers.launch.ports import free_ports
from conf.jars import fetch


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZookeeperProcess]:
    fetch("zookeeper-broker")
    server = ZookeeperProcess(free_ports(1)[0], tmp_path_factory.mktemp("zookeeper"))
    server.start()
    try:
        server.wait_until_started()
        yield server
    finally:
        server.kill()
