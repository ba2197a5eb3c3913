"""A running broker loses its only log directory (KIP-112), so it ends."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka.protocol.producer import ProduceRequest

from brokers.wire.errors import ErrorCode
from tests.brokers.test_cluster import produced, wait_for_like_logs
from tests.support.batches import batch
from tests.support.mock_cluster import MockCluster, running_cluster
from tests.support.raw import RawClient
from tests.support.waiting import wait_until

pytestmark = pytest.mark.mock_brokers


@pytest.fixture(params=["300", "3600000"], ids=["idle", "by-append"])
def cluster(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[MockCluster]:
    """Three brokers whose sessions outlast the test, so only a checkpoint or an append finds the directory gone."""
    checkpoints = f"replica.high.watermark.checkpoint.interval.ms={request.param}"
    settings = ("broker.heartbeat.interval.ms=300", checkpoints)
    policy = {"broker_session_timeout_ms": 60_000, "auto_leader_rebalance_enable": False}
    with running_cluster(tmp_path, settings=settings, **policy) as cluster:
        cluster.create_topic("t", {"0": [1, 2, 3]}, segment_bytes="200")
        yield cluster


def refused(client: RawClient) -> bool:
    """Produce until a new segment is needed, which cannot be created."""
    data = ProduceRequest.TopicProduceData
    entry = data.PartitionProduceData(index=0, records=batch(b"x" * 100))
    body = ProduceRequest(version=9, acks=1, timeout_ms=5_000, topic_data=[data(name="t", partition_data=[entry])])
    answer = client.ask(body).responses[0].partition_responses[0]
    assert answer.error_code in (0, ErrorCode.KAFKA_STORAGE_ERROR)
    return bool(answer.error_code)


def reports(cluster: MockCluster, outcome: str) -> list[dict[str, Any]]:
    events = [json.loads(entry.raw) for entry in cluster.bus.read(0, cluster.bus.last_seq())]
    return [one for one in events if one["kind"] == "replica_report" and one["outcome"] == outcome]


def test_a_lost_directory_moves_the_leaders_and_ends_the_broker(
    cluster: MockCluster, request: pytest.FixtureRequest
) -> None:
    assert produced(cluster, 1, b"kept").error_code == 0
    wait_for_like_logs(cluster, (1, 2, 3))
    client = RawClient.to(cluster.folder(1))
    # Removed in one step, because the broker may write again to a folder that is removed file by file.
    shutil.rmtree(cluster.folder(1).rename(cluster.directory / "lost"))
    if "by-append" in request.node.name:
        wait_until(lambda: refused(client), "the broker to find no room")
    wait_until(lambda: cluster.leader("t", 0) == 2, "another leader")
    assert [(one["broker"], one["error"]) for one in reports(cluster, "offline")] == [(1, "KAFKA_STORAGE_ERROR")]
    assert cluster.exit_code(1) == 1
    client.close()
    assert cluster.partitions("t")[0]["replica_states"]["1"] == "OfflineReplica"
    assert produced(cluster, 2, b"new").error_code == 0
    cluster.start(1)
    cluster.wait_for_isr("t", 3)
    wait_for_like_logs(cluster, (1, 2, 3))
