"""A real ZooKeeper: many znodes are read at once, and those of others below a topic go with it."""

from pathlib import Path

import pytest

from brokers.gateways.zk.client import connection
from brokers.gateways.zk.cluster_view import ClusterView
from brokers.gateways.zk.mirror.mirror import Mirror
from brokers.gateways.zk.mirror.stored import load
from brokers.launch.kafka.zookeeper import ZookeeperProcess
from tests.support.znode_cluster import ZnodeCluster

pytestmark = [pytest.mark.zookeeper, pytest.mark.timeout(600)]


def test_a_topic_goes_with_what_others_made_below_it(zookeeper: ZookeeperProcess, tmp_path: Path) -> None:
    # ZooKeeper's paths have a root here, and a write that it refuses names the whole path.
    cluster = ZnodeCluster(zookeeper.address, "foreign", tmp_path / "bus.db")
    cluster.put_topic("t", {0: [1, 2]})
    session, mirror = cluster.session(), Mirror()
    session.take(100, frozenset({100}), 0, 1, adopting=True)
    list(load(session, mirror))
    for below in ("/a/b", "/partitions/a", "/partitions/0/a", "/partitions/0/state/a"):
        cluster.client.create(f"/brokers/topics/t{below}", makepath=True)
    session.write(list(mirror.writes(ClusterView(), {"t": None}, 7)))
    assert cluster.client.get_children("/brokers/topics") == []
    session.close()
    cluster.close()


def test_many_znodes_are_read(zookeeper: ZookeeperProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "READS_AT_ONCE", 3)
    cluster = ZnodeCluster(zookeeper.address, "many", tmp_path / "bus.db")
    paths = [f"/many/{number}" for number in range(10)]
    for number, path in enumerate(paths):
        cluster.client.create(f"{path}/below", makepath=True)
        for _ in range(number):
            cluster.client.set(path, str(number).encode())
    session = cluster.session()
    asked = [*paths, "/none", "/many/9/below"]
    read = [found and (found[0], found[1].version) for found in session.read_each(asked)]
    assert read == [(b"", 0), *[(str(number).encode(), number) for number in range(1, 10)], None, (b"", 0)]
    assert list(session.children_of_each(asked)) == [["below"]] * 10 + [[], []]
    session.close()
    cluster.close()
