"""Stories give the same decisions about partitions and deleted topics with brokers of real Kafka."""

from collections.abc import Iterator

import pytest

from tests.real_kafka.by_brokers import ByBrokers, compared, merged
from tests.scenarios.story import Story, all_stories
from tests.support.real_cluster import POLICY, RealCluster, led_by_rules

pytestmark = pytest.mark.kraft
# Stories in which real brokers do only what the script says: ISRs shrink and grow only where the story says so.
NAMES = (
    "brokers/bounce_of_all",
    "brokers/last_one",
    "deletion/several_partitions_behind_gateways",
    "elections/follower_dies",
    "elections/many_partitions",
    "elections/preferred_not_by_itself",
    "elections/unclean_is_not_needed",
    "reassign/changed_and_cancelled_while_nobody_leads",
    "reassign/fewer_replicas",
    "reassign/leader_is_removed",
    "reassign/one_after_another",
    "reassign/one_replica",
    "reassign/order_only",
    "reassign/removed_broker_behind_a_gateway",
    "shutdown/by_heartbeat",
    "shutdown/comes_back",
    "topics/created_by_assignment",
    "topics/more_partitions",
    "unclean/by_request_after_all_died",
    "unclean/by_topic_enabled_after_all_died",
    "walks/v2x_leader_strategies",
)
FOURTH = 4


def in_turn() -> list[Story]:
    """Put the stories that need a fourth broker last, because placement depends on which brokers are there."""
    stories = [one for one in all_stories() if one.name in NAMES]
    return sorted(stories, key=lambda story: str(FOURTH) in story.blocks[0].commands[0].arguments)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    cluster = RealCluster(tmp_path_factory.mktemp("stories"), brokers=FOURTH)
    with led_by_rules(cluster, but={FOURTH}, **POLICY):
        yield cluster


@pytest.mark.parametrize("story", in_turn(), ids=lambda story: story.name)
def test_real_brokers_show_the_written_state(story: Story, cluster: RealCluster) -> None:
    player = ByBrokers(cluster)
    try:
        shown = player.tell(story)
    finally:
        player.clear()
    assert shown == [compared(block.expected) for block in merged(story)]


def test_all_named_stories_exist() -> None:
    assert set(NAMES) <= {story.name for story in all_stories()}
