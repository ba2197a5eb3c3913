"""Every story gives the same output from the Spark query.

In one of four the query has two shuffle partitions, which is the default, and restarts from its checkpoint. Both cost
time: a batch takes half as much CPU again with a second partition, and a start takes as much as two batches. Kills in
the middle of a batch have their own tests (``tests/streaming/test_takeover.py``). Several stories are played at once in
one Spark session.
"""

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from conf.settings import Settings
from streaming.session import build_session, choose_java, end_session
from tests.scenarios.by_query import ByQuery
from tests.scenarios.by_rules import ByRules
from tests.scenarios.story import Story, all_stories
from tests.scenarios.telling import scenes, tell

JVM_END_TIMEOUT_S = 120.0
AT_ONCE = (os.cpu_count() or 1) + 1
STORIES = all_stories()
RESTARTED = frozenset(story.name for story in STORIES[::4])
Play = Callable[[Story], ByQuery]


@pytest.fixture(scope="module")
def played(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Future[ByQuery]]]:
    """Start to play the stories of all selected tests; return the future of each, by name."""
    asked = [item.callspec.params["story"] for item in request.session.items if item.path == request.path]
    choose_java()
    session = build_session(Settings(), tmp_path_factory.mktemp("local"))
    own = threading.local()

    def play(story: Story) -> ByQuery:
        # A session of its own for each thread: the queries of one session need different names.
        if not hasattr(own, "session"):
            own.session = session.newSession()
        folder = tmp_path_factory.mktemp("story")
        restarts = story.name in RESTARTED
        return ByQuery(own.session, folder, scenes(story), partitions=2 if restarts else 1, restarts=restarts)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {story.name: pool.submit(play, story) for story in asked}
        pool.shutdown(cancel_futures=True)
    # A JVM keeps threads and memory of every query it ran, and the next module would get the same JVM.
    end_session(session, JVM_END_TIMEOUT_S)


@pytest.mark.spark
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_the_query_gives_the_written_output(story: Story, played: dict[str, Future[ByQuery]]) -> None:
    player = played[story.name].result()
    assert story.retold(tell(story, player)) == story.retold(tell(story, ByRules()))
