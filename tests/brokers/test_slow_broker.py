"""Frozen brokers that keep their sessions: their backlog, and how they catch up."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.brokers.test_cluster import events_logged, produced, wait_for_like_logs
from tests.support.mock_cluster import MockCluster, running_cluster
from tests.support.waiting import wait_until

pytestmark = pytest.mark.mock_brokers


LAG_MS = 1_500
# Longer than a busy machine holds up a follower, so that only the test takes a replica out of the ISR.
NO_LAG_MS = 60_000


@pytest.fixture
def cluster(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[MockCluster]:
    """Three brokers. A frozen broker is not fenced; the parameter is the brokers' maximum lag in ms."""
    lag_ms = request.param
    policy = {
        "broker_session_timeout_ms": 60_000,
        "auto_leader_rebalance_enable": False,
        # As the brokers': the engine lets a replica that may still join hold the watermark.
        "replica_lag_time_max_ms": lag_ms,
    }
    settings = ("broker.heartbeat.interval.ms=300", f"replica.lag.time.max.ms={lag_ms}")
    with running_cluster(tmp_path, settings=settings, **policy) as cluster:
        cluster.create_topic("t", {"0": [1, 2, 3]})
        yield cluster


def backlog(cluster: MockCluster) -> dict[int, int]:
    return {b["broker"]: b["backlog"] for b in cluster.view()["brokers"]}


def lead(cluster: MockCluster, replicas: list[int]) -> None:
    """Make the first of ``replicas`` the leader."""
    cluster.publish("alter_reassignment", topic="t", partition=0, replicas=replicas)
    where: list[dict[str, Any]] = [{"topic": "t", "partition": 0}]
    cluster.publish("elect_leaders", election_type="preferred", partitions=where)
    wait_until(lambda: cluster.leader("t", 0) == replicas[0], f"broker {replicas[0]} to lead")


@pytest.mark.parametrize("cluster", [NO_LAG_MS], indirect=True)
def test_a_backlog_is_counted_and_coalesced_to_the_newest(cluster: MockCluster) -> None:
    """Difference 7 of the replication design V2: state change requests pile up at slow followers."""
    wait_until(lambda: set(backlog(cluster).values()) == {0}, "all to be done")
    before = cluster.partitions("t")[0]
    assert before["completed_epochs"] == {str(broker): before["leader_epoch"] for broker in (1, 2, 3)}
    cluster.freeze(3)
    for replicas in ([2, 1, 3], [1, 2, 3], [2, 1, 3]):
        lead(cluster, replicas)
    wait_until(lambda: backlog(cluster) == {1: 0, 2: 0, 3: 1}, "only the one that stands still to be behind")
    behind = cluster.partitions("t")[0]
    assert behind["requested_epochs"]["3"] > behind["completed_epochs"]["3"] == before["leader_epoch"]
    cluster.thaw(3)
    wait_until(lambda: backlog(cluster)[3] == 0, "it to do what it missed")
    assert sum(one["count"] for one in events_logged(cluster, 3, "older decisions skipped")) > 0
    cluster.wait_for_isr("t", 3)
    assert produced(cluster, 2, b"x").error_code == 0
    wait_for_like_logs(cluster, (1, 2, 3))


@pytest.mark.parametrize("cluster", [LAG_MS], indirect=True)
def test_a_follower_that_lags_leaves_the_isr_and_comes_back(cluster: MockCluster) -> None:
    """Kafka's replica.lag.time.max.ms applies although the broker stays active."""
    before = cluster.partitions("t")[0]
    cluster.freeze(3)
    assert produced(cluster, 1, b"x", acks=1).error_code == 0
    wait_until(lambda: set(cluster.partitions("t")[0]["isr"]) == {1, 2}, "only the lagging follower to leave the ISR")
    after = cluster.partitions("t")[0]
    assert after["leader_epoch"] == before["leader_epoch"], "its leader asked for it"
    assert 3 in cluster.active()
    assert produced(cluster, 1, b"y").error_code == 0
    cluster.thaw(3)
    cluster.wait_for_isr("t", 3)
    wait_for_like_logs(cluster, (1, 2, 3))
