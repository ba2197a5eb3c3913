"""Fixtures of tests with broker processes: an engine, and a cluster that leaves nothing running."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.mock_cluster import MockCluster
from tests.support.rules_engine import RulesEngine

POLICY = {
    "broker_session_timeout_ms": 2_000,
    "broker_heartbeat_interval_ms": 300,
    "auto_leader_rebalance_enable": False,
}


@pytest.fixture
def engine() -> Iterator[RulesEngine]:
    """The rules without Spark, not started yet."""
    engine = RulesEngine()
    yield engine
    engine.stop()


@pytest.fixture
def cluster(tmp_path: Path, engine: RulesEngine) -> Iterator[MockCluster]:
    """Three running brokers under an engine."""
    cluster = MockCluster(tmp_path)
    engine.start(cluster.bus_path, **POLICY)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
