"""A cluster in a ZooKeeper in memory, and the rules, which decide on a bus."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from brokers.gateways.zk.client import connection
from tests.brokers.gateways.zk.zookeeper import Zookeeper
from tests.support import znode_cluster
from tests.support.rules_engine import RulesEngine
from tests.support.znode_cluster import ZnodeCluster

POLICY = {"broker_session_timeout_ms": 600_000, "auto_leader_rebalance_enable": False}


@pytest.fixture
def zookeeper(monkeypatch: pytest.MonkeyPatch) -> Zookeeper:
    """Return the ZooKeeper in memory that every client gets."""
    server = Zookeeper()
    monkeypatch.setattr(connection, "ManyReads", server)
    monkeypatch.setattr(znode_cluster, "KazooClient", server)
    return server


@pytest.fixture
def cluster(zookeeper: Zookeeper, tmp_path: Path) -> Iterator[ZnodeCluster]:
    cluster = ZnodeCluster("memory", "c", tmp_path / "bus.db")
    engine = RulesEngine()
    engine.start(tmp_path / "bus.db", **POLICY)
    yield cluster
    engine.stop()
    cluster.close()
