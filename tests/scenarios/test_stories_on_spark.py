"""Stories that together use every word come out the same on Spark, some with a restart in the middle."""

import contextlib
from pathlib import Path

import pytest

from tests.scenarios.by_query import ByQuery
from tests.scenarios.by_rules import ByRules
from tests.scenarios.story import all_stories
from tests.scenarios.telling import tell
from tests.scenarios.vocabulary import WORDS

# Each with the block, counted from 0, before which the query starts again from its checkpoint.
PLAYED = {
    "controller/settings_of_the_new_one": None,
    "reassign/cancelled": 2,
    "unclean/by_cluster_enabled_later": None,
    "walks/brokers_come_and_go": None,
    "walks/v08_broker_startup": 3,
    "walks/v2x_leader_strategies": None,
}
STORIES = {story.name: story for story in all_stories()}


@pytest.mark.spark
@pytest.mark.parametrize("name", PLAYED)
def test_by_the_query(name: str, tmp_path: Path) -> None:
    story = STORIES[name]
    with contextlib.closing(ByQuery(tmp_path, restart_before=PLAYED[name])) as player:
        assert story.retold(tell(story, player)) == story.retold(tell(story, ByRules()))


def test_the_stories_played_use_every_word() -> None:
    used = {command.word for name in PLAYED for block in STORIES[name].blocks for command in block.commands}
    assert sorted(set(WORDS) - used) == []
