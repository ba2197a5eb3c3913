"""Stories come out the same with brokers of real Kafka, in what they tell of partitions."""

from collections.abc import Iterator

import pytest

from tests.real_kafka.by_brokers import ByBrokers, about_partitions, merged
from tests.real_kafka.conftest import POLICY
from tests.scenarios.story import Story, all_stories
from tests.support.real_cluster import RealCluster
from tests.support.rules_engine import RulesEngine

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]
# Those in which brokers do nothing that their script would have to know: no ISR shrinks or grows by itself.
NAMES = (
    "brokers/last_one",
    "elections/follower_dies",
    "elections/many_partitions",
    "elections/unclean_is_not_needed",
    "reassign/leader_is_removed",
    "reassign/order_only",
)


@pytest.fixture(scope="module")
def engine() -> Iterator[RulesEngine]:
    """The rules alone, for what the job makes of them is told by other tests."""
    engine = RulesEngine()
    yield engine
    engine.stop()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, engine: RulesEngine) -> Iterator[RealCluster]:
    cluster = RealCluster(tmp_path_factory.mktemp("stories"), brokers=4)
    engine.start(cluster.bus_path, **POLICY)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.mark.parametrize("story", [one for one in all_stories() if one.name in NAMES], ids=lambda story: story.name)
def test_by_brokers(story: Story, cluster: RealCluster) -> None:
    player = ByBrokers(cluster)
    try:
        told = player.tell(story)
    finally:
        player.clear()
    assert told == [about_partitions(block.expected) for block in merged(story)]


def test_all_that_are_named_are_there() -> None:
    assert set(NAMES) <= {story.name for story in all_stories()}
