"""Znodes of others in a real ZooKeeper, below those of a topic."""

from pathlib import Path

import pytest

from brokers.gateways.zk.cluster_view import ClusterView
from brokers.gateways.zk.mirror import Mirror
from brokers.gateways.zk.stored import load
from brokers.launch.kafka.zookeeper import ZookeeperProcess
from tests.support.znode_cluster import ZnodeCluster

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]


def test_a_topic_goes_with_what_others_made_below_it(zookeeper: ZookeeperProcess, tmp_path: Path) -> None:
    # ZooKeeper's paths have a root here, and a write that it refuses names the whole path.
    cluster = ZnodeCluster(zookeeper.address, "foreign", tmp_path / "bus.db")
    cluster.put_topic("t", {0: [1, 2]})
    session, mirror = cluster.session(), Mirror()
    session.take(100, frozenset({100}), 0, 1, adopting=True)
    list(load(session, mirror))
    for below in ("/a/b", "/partitions/a", "/partitions/0/a", "/partitions/0/state/a"):
        cluster.client.create(f"/brokers/topics/t{below}", makepath=True)
    session.write(list(mirror.writes(ClusterView(), ["t"], 7)))
    assert cluster.client.get_children("/brokers/topics") == []
    session.close()
    cluster.close()
