"""Stories of each kind give the same output from the Spark query.

Spark adds plumbing: batches, shards, what a shard asks of another, state between batches. Together these stories use
all of it, and every story is played through the operators in process (``test_stories.py``).

In one of four stories the query has two shuffle partitions, which is the default, and restarts from its checkpoint.
Kills in the middle of a batch have their own tests (``tests/streaming/test_takeover.py``). Several stories are played
at once in one Spark session.
"""

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from pyspark.sql import SparkSession

from tests.scenarios.by_query import ByQuery
from tests.scenarios.by_rules import ByRules
from tests.scenarios.story import Story, all_stories
from tests.scenarios.telling import scenes, tell

AT_ONCE = (os.cpu_count() or 1) + 1
CHOSEN = (
    "balance/leaders_come_back",
    "brokers/bounce_of_all",
    "brokers/session_lost_and_found",
    "config/acls",
    "config/topic_and_cluster",
    "controller/failover_during_outage",
    "controller/takeover_twice",
    "deletion/created_again",
    "deletion/several_partitions",
    "elections/many_partitions",
    "elections/preferred_for_all",
    "gateways/a_chain_of_killed_gateways",
    "isr/several_partitions_at_once",
    "log_dirs/left_behind_in_one_of_several",
    "malformed/no_json",
    "malformed/unknown_fields",
    "reassign/controller_changes",
    "reassign/removed_broker_dies",
    "shutdown/two_at_once",
    "topics/created_across_racks",
    "topics/more_partitions",
    "unclean/by_cluster_enabled_later",
    "walks/v2x_reassignment_and_balance",
    "watermark/waits_for_a_joiner",
)
STORIES = [story for story in all_stories() if story.name in CHOSEN]
RESTARTED = frozenset(story.name for story in STORIES[::4])
Play = Callable[[Story], ByQuery]


@pytest.fixture(scope="module")
def played(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, spark_session: SparkSession
) -> Iterator[dict[str, Future[ByQuery]]]:
    """Start to play the stories of all selected tests; return the future of each, by name."""
    tests = (item for item in request.session.items if item.path == request.path and hasattr(item, "callspec"))
    asked = [item.callspec.params["story"] for item in tests]
    own = threading.local()

    def play(story: Story) -> ByQuery:
        # A session of its own for each thread: the queries of one session need different names.
        if not hasattr(own, "session"):
            own.session = spark_session.newSession()
        folder = tmp_path_factory.mktemp("story")
        restarts = story.name in RESTARTED
        return ByQuery(own.session, folder, scenes(story), partitions=2 if restarts else 1, restarts=restarts)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {story.name: pool.submit(play, story) for story in asked}
        pool.shutdown(cancel_futures=True)


def test_the_chosen_stories_are_there() -> None:
    assert tuple(story.name for story in STORIES) == CHOSEN


@pytest.mark.spark
@pytest.mark.smoke
@pytest.mark.xdist_group("spark_session")
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_the_query_gives_the_written_output(story: Story, played: dict[str, Future[ByQuery]]) -> None:
    player = played[story.name].result()
    assert story.retold(tell(story, player)) == story.retold(tell(story, ByRules()))
