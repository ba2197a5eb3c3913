"""The demo with real brokers, under an engine without Spark: each step finishes, and nothing is lost."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.demo.kafka_cluster import KafkaDemoCluster
from cli.demo.kafka_story import KafkaStory
from cli.demo.story import TOPIC
from cli.demo.watch import Watch
from conf.jars import fetch
from tests.support.rules_engine import RulesEngine
from tests.support.waiting import wait_until

pytestmark = pytest.mark.cluster


class Cluster(KafkaDemoCluster):
    """A demo cluster decided by the rules without Spark: the same story in less time."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.engine = RulesEngine()

    def start_engine(self) -> None:
        self.engine.start(self.bus.path, broker_connection_lost_grace_ms=0, auto_leader_rebalance_enable=False)

    def wait_for_engine(self) -> None:
        wait_until(lambda: self.bus.decided_seq() > 0, "the rules to decide", 20.0)

    def stop(self) -> None:
        super().stop()
        self.engine.stop()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    for name in ("kafka-broker", "kafka-tools"):
        fetch(name)
    cluster = Cluster(tmp_path)
    yield cluster
    cluster.stop()
    cluster.bus.close()


def test_the_kafka_demo_loses_no_record(cluster: Cluster) -> None:
    watch = Watch(cluster.bus, TOPIC, cluster.check)
    story = KafkaStory(cluster, watch)
    try:
        result = story.tell()
    finally:
        watch.stop()
    assert len(story.done) == len(story.steps)
    assert result.account.is_clean, result.account
    assert result.account.read_back >= result.account.acknowledged > 600
    assert [name for name, _ in result.more] == ["longest wait for a record while a broker stopped cleanly"]
    running = {service.name for service in cluster.services if service.state == "running"}
    assert len(running) == 4, "two gateways, and all brokers except the one that was stopped"
