"""A gateway on a real ZooKeeper makes the root that brokers would make."""

import pytest

from brokers.gateways.zk.session import Session
from brokers.launch.kafka.zookeeper import ZookeeperProcess
from tests.support.znode_cluster import CLUSTER_ID, PATIENT

pytestmark = [pytest.mark.zookeeper, pytest.mark.timeout(600)]


def test_a_root_of_two_levels_that_does_not_exist_yet_is_made(zookeeper: ZookeeperProcess) -> None:
    session = Session(f"{zookeeper.address}/outer/inner", 10_000, lambda path: None, lambda why: None)
    session.open(PATIENT.zookeeper_connection_timeout_ms)
    session.check_cluster(CLUSTER_ID)
    assert session.take(100, frozenset({100}), 0, 1) == 1
    session.close()
