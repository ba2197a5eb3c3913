"""Fixtures of tests with brokers of real Kafka."""

from collections.abc import Iterator

import pytest

from tests.support.real_cluster import RealCluster
from tests.support.spark_engine import SparkEngine

POLICY = {
    "broker_session_timeout_ms": 6_000,
    "broker_connection_lost_grace_ms": 0,
    "auto_leader_rebalance_enable": False,
}


@pytest.fixture(scope="module")
def engine() -> Iterator[SparkEngine]:
    """The Spark job, as users run it."""
    engine = SparkEngine()
    yield engine
    engine.stop()


@pytest.fixture(scope="module")
def policy() -> dict[str, object]:
    """The engine's settings; a module that needs others defines a fixture with this name."""
    return dict(POLICY)


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, engine: SparkEngine, policy: dict[str, object]
) -> Iterator[RealCluster]:
    """Three brokers behind two gateways, under an engine that decides."""
    cluster = RealCluster(tmp_path_factory.mktemp("real"), gateways=2)
    engine.start(cluster.bus_path, **policy)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
