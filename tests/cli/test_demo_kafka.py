"""The demo with real brokers, under an engine without Spark: each step finishes, and nothing is lost."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.cluster.led_cluster import ZOOKEEPER_ENGINE_SETTINGS
from cli.demo.kafka_cluster import TIMES, KafkaDemoCluster, jar_sets
from cli.demo.kafka_story import KafkaStory, ZookeeperStory
from cli.demo.story import TOPIC
from cli.demo.watch import Watch
from conf.jars import fetch
from tests.support.rules_engine import RulesEngine
from tests.support.waiting import wait_until

pytestmark = pytest.mark.smoke


class Cluster(KafkaDemoCluster):
    """A demo cluster decided by the rules without Spark: the same story in less time."""

    def __init__(self, directory: Path, *, zookeeper: bool) -> None:
        super().__init__(directory, zookeeper=zookeeper)
        self.engine = RulesEngine()

    def start_engine(self) -> None:
        listed = (*TIMES, *(ZOOKEEPER_ENGINE_SETTINGS if self.in_zookeeper else ()))
        settings = dict(one.split("=") for one in listed)
        self.engine.start(self.bus.path, **{name.replace(".", "_"): value for name, value in settings.items()})

    def wait_for_engine(self) -> None:
        wait_until(lambda: self.bus.decided_seq() > 0, "the rules to decide", 20.0)

    def stop(self) -> None:
        super().stop()
        self.engine.stop()


@pytest.fixture(
    params=[
        pytest.param(False, id="metadata log", marks=pytest.mark.kraft),
        pytest.param(True, id="ZooKeeper", marks=pytest.mark.zookeeper),
    ]
)
def cluster(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    for name in jar_sets(zookeeper=request.param):
        fetch(name)
    cluster = Cluster(tmp_path, zookeeper=request.param)
    yield cluster
    cluster.stop()
    cluster.bus.close()


def test_the_kafka_demo_loses_no_record(cluster: Cluster) -> None:
    watch = Watch(cluster.bus, TOPIC, cluster.check, cluster.moved)
    story = (ZookeeperStory if cluster.in_zookeeper else KafkaStory)(cluster, watch)
    try:
        result = story.tell()
    finally:
        watch.stop()
    assert len(story.done) == len(story.steps)
    assert result.account.is_clean, result.account
    assert result.account.read_back >= result.account.acknowledged > 600
    assert [name for name, _ in result.more] == ["longest wait for a record while a broker stopped cleanly"]
    running = {service.name for service in cluster.services if service.state == "running"}
    others = {"zookeeper"} if cluster.in_zookeeper else set()
    assert len(running - others) == 4, "two gateways, and all brokers except the one that was stopped"
    assert others <= running
