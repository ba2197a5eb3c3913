"""What brokers show of replicas that are away, of fetches that wait, and of logs that were lost."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka.protocol.consumer import FetchRequest
from kafka.protocol.metadata import MetadataRequest

from brokers.mock.log.directory import HIGH_WATERMARKS_FILE, LogDirectory
from brokers.wire.errors import ErrorCode
from state.events import TopicPartition
from tests.brokers.test_cluster import events_logged, produced, wait_for_like_logs
from tests.support.clients import read_all
from tests.support.mock_cluster import SETTINGS, MockCluster, running_cluster
from tests.support.raw import RawClient
from tests.support.waiting import wait_until

pytestmark = pytest.mark.mock_brokers

PLACE = TopicPartition("t", 0)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[MockCluster]:
    """Three brokers that checkpoint their high watermarks every 100 ms."""
    settings = (*SETTINGS, "replica.high.watermark.checkpoint.interval.ms=100")
    policy = {"broker_session_timeout_ms": 2_000, "auto_leader_rebalance_enable": False}
    with running_cluster(tmp_path, settings=settings, **policy) as cluster:
        yield cluster


def metadata_of(cluster: MockCluster, broker: int, version: int) -> Any:
    """Return partition 0 of ``t`` in a broker's metadata response."""
    client = RawClient.to(cluster.folder(broker))
    try:
        wanted = MetadataRequest.MetadataRequestTopic(name="t")
        return client.ask(MetadataRequest(version=version, topics=[wanted])).topics[0].partitions[0]
    finally:
        client.close()


def test_metadata_names_replicas_that_are_away(cluster: MockCluster) -> None:
    """REPLICA_NOT_AVAILABLE is for version 0 only, because its clients look every id up in the list of brokers."""
    cluster.create_topic("t", {"0": [1, 2]})
    cluster.kill(2)
    wait_until(lambda: metadata_of(cluster, 3, 9).offline_replicas == [2], "broker 2 to be known as away")
    old, new = metadata_of(cluster, 3, 0), metadata_of(cluster, 3, 9)
    assert (old.error_code, old.leader_id, old.replica_nodes) == (ErrorCode.REPLICA_NOT_AVAILABLE, 1, [1])
    assert (new.error_code, new.leader_id, new.replica_nodes) == (0, 1, [1, 2])
    cluster.kill(1)
    for version in (0, 1, 9):
        wait_until(
            lambda v=version: metadata_of(cluster, 3, v).error_code == ErrorCode.LEADER_NOT_AVAILABLE, "nobody to lead"
        )
        assert metadata_of(cluster, 3, version).leader_id == -1
    cluster.start(1)
    wait_until(lambda: metadata_of(cluster, 3, 9).error_code == 0, "a leader again")


def test_a_waiting_fetch_is_answered_with_new_records(cluster: MockCluster) -> None:
    """The fetch waits for the high watermark, at most 20 s; an append alone does not answer it."""
    cluster.create_topic("t", {"0": [1, 2, 3]})
    partition = FetchRequest.FetchTopic.FetchPartition(
        partition=0, current_leader_epoch=-1, fetch_offset=0, log_start_offset=-1, partition_max_bytes=1 << 20
    )
    body = FetchRequest(
        version=11,
        replica_id=-1,
        max_wait_ms=20_000,
        min_bytes=1,
        max_bytes=1 << 20,
        isolation_level=0,
        topics=[FetchRequest.FetchTopic(topic="t", partitions=[partition])],
        forgotten_topics_data=[],
        rack_id="",
    )
    client = RawClient.to(cluster.folder(1))  # the client's own timeout is shorter than the fetch's
    client.send(body)
    assert produced(cluster, 1, b"x").error_code == 0
    got = client.receive(body).responses[0].partitions[0]
    client.close()
    assert (got.error_code, got.high_watermark) == (0, 1)
    assert b"x" in bytes(got.records)


def test_the_high_watermark_checkpoint_outlives_a_kill(cluster: MockCluster) -> None:
    cluster.create_topic("t", {"0": [1, 2, 3]})
    for number in range(5):
        assert produced(cluster, 1, b"%d" % number).error_code == 0

    def written(broker: int) -> str:
        path = cluster.folder(broker) / HIGH_WATERMARKS_FILE
        return path.read_text() if path.exists() else ""

    for broker in cluster.brokers:
        wait_until(lambda b=broker: written(b) == "0\n1\nt 0 5\n", f"broker {broker} to write it down")
        cluster.kill(broker)
        assert LogDirectory(cluster.folder(broker)).high_watermarks == {PLACE: 5}
    cluster.start()
    cluster.wait_for_isr("t", 3)
    assert [int(r.value) for r in read_all(cluster.bootstrap(), "t", 1)] == list(range(5))


def test_a_follower_below_the_leaders_log_start_starts_there(cluster: MockCluster) -> None:
    """OFFSET_OUT_OF_RANGE: the leader dropped old records, so the follower cannot use any of its own."""
    cluster.create_topic("t", {"0": [1, 2]}, segment_bytes="200")
    for number in range(6):
        assert produced(cluster, 1, b"%d" % number * 100).error_code == 0
    wait_for_like_logs(cluster, (1, 2))
    cluster.kill(2)
    cluster.wait_for_isr("t", 1)
    wait_until(lambda: produced(cluster, 1, b"alone").error_code == 0, "the leader to hear of it")
    cluster.kill(1)
    segments = sorted((cluster.folder(1) / "t-0").glob("*.log"))
    for segment in segments[:3]:  # as retention would
        segment.unlink()
    (cluster.folder(1) / "t-0" / "leader-epoch-checkpoint").unlink()
    for segment in sorted((cluster.folder(2) / "t-0").glob("*.log"))[1:]:  # it crashed early
        segment.unlink()
    cluster.start(1)
    wait_until(lambda: cluster.leader("t", 0) == 1, "the last in sync to lead")
    cluster.start(2)
    cluster.wait_for_isr("t", 2)
    assert events_logged(cluster, 2, "out of the leader's range")
    wait_for_like_logs(cluster, (1, 2))
    first = min(int(path.stem) for path in (cluster.folder(2) / "t-0").glob("*.log"))
    assert first == int(segments[3].stem) > 0


def test_a_follower_without_its_log_shows_the_high_watermark_again(cluster: MockCluster) -> None:
    """It shows the leader's high watermark, although no decision follows after it has caught up."""
    cluster.create_topic("t", {"0": [1, 2]})
    for number in range(5):
        assert produced(cluster, 1, b"%d" % number).error_code == 0
    cluster.kill(2)
    shutil.rmtree(cluster.folder(2) / "t-0")
    (cluster.folder(2) / HIGH_WATERMARKS_FILE).unlink()
    cluster.start(2)
    cluster.wait_for_isr("t", 2)
    path = cluster.folder(2) / HIGH_WATERMARKS_FILE
    wait_until(lambda: path.exists() and path.read_text() == "0\n1\nt 0 5\n", "the follower to show it")
