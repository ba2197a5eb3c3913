"""A broker that was away for so long that the metadata log was trimmed meanwhile begins with a snapshot."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from isrflow.bus.image import read_image
from tests.support.clients import ConfluentSender, read_all
from tests.support.controller_client import ControllerClient
from tests.support.mock_cluster import wait_until
from tests.support.real_cluster import RealCluster
from tests.support.rules_engine import RulesEngine

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]
TOPICS, AT_A_TIME = 80, 8
RECORDS = 100


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RealCluster]:
    """Two brokers behind a gateway that takes a snapshot every few kilobytes."""
    cluster = RealCluster(
        tmp_path, brokers=2, gateway_settings={"metadata.log.max.record.bytes.between.snapshots": "4000"}
    )
    engine = RulesEngine()
    engine.start(cluster.bus_path, auto_leader_rebalance_enable=False)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
        engine.stop()


def create(cluster: RealCluster, *topics: NewTopic) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    for created in admin.create_topics(list(topics)).values():
        created.result(60)


def quorum_end(cluster: RealCluster) -> int:
    client = ControllerClient(cluster.voters[0].port)
    told = client.fetch(0, read_image(cluster.bus.image()).cluster.quorum.quorum_epoch)
    client.close()
    return int(told["HighWatermark"])


def begins(folder: Path) -> int:
    """Say at which offset the newest snapshot in a folder ends."""
    return max((int(path.name.split("-")[0]) for path in folder.glob("*.checkpoint")), default=0)


def test_a_broker_comes_back_to_a_log_that_was_trimmed(cluster: RealCluster) -> None:
    create(cluster, NewTopic("both", 2, 2))
    cluster.wait_for_isr("both", 2)
    away = cluster.broker(2)
    metadata = away.data[0] / "__cluster_metadata-0"
    away.kill()
    # Nothing that it has read by now is from beyond this.
    end = quorum_end(cluster)
    wait_until(lambda: cluster.states()[2] == "fenced", "the broker to be fenced", 60)
    for first in range(0, TOPICS, AT_A_TIME):
        create(cluster, *(NewTopic(f"t{number}", 3, 1) for number in range(first, first + AT_A_TIME)))
    gateway = cluster.gateways[100].folder / "log"
    wait_until(lambda: min(int(path.stem) for path in gateway.glob("*.log")) > end, "the log to be trimmed", 60)
    cluster.restart(2)
    # It was sent the snapshot: a broker makes its own only after many megabytes.
    assert begins(metadata) > end
    cluster.wait_for_isr("both", 2)
    cluster.agree("both")
    # Now it is the only one that has what came meanwhile from a snapshot.
    cluster.broker(1).kill()
    wait_until(lambda: {held["leader"] for held in cluster.partitions("both").values()} == {2}, "it to lead", 60)
    sender = ConfluentSender(cluster.bootstrap)
    for number in range(RECORDS):
        sender.send("both", number % 2, b"%d" % number)
    sender.finish(60)
    assert sender.failed == []
    assert len(read_all(cluster.bootstrap, "both", 2)) == RECORDS
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    assert {f"t{number}" for number in range(TOPICS)} <= set(admin.list_topics(timeout=30).topics)
