"""Stories that together use every word come out the same on Spark, with a restart from the checkpoint in the middle."""

import contextlib
from pathlib import Path

import pytest

from tests.scenarios.by_query import ByQuery
from tests.scenarios.by_rules import ByRules
from tests.scenarios.story import all_stories
from tests.scenarios.telling import tell
from tests.scenarios.vocabulary import WORDS

PLAYED = (
    "controller/settings_of_the_new_one",
    "elections/leader_dies",
    "reassign/cancelled",
    "unclean/by_cluster_enabled_later",
    "walks/brokers_come_and_go",
    "walks/v08_broker_startup",
    "walks/v08_controlled_shutdown",
    "walks/v2_load_balancing",
)
STORIES = {story.name: story for story in all_stories()}


@pytest.mark.spark
@pytest.mark.parametrize("name", PLAYED)
def test_by_the_query(name: str, tmp_path: Path) -> None:
    story = STORIES[name]
    with contextlib.closing(ByQuery(tmp_path, restart_before=2)) as player:
        assert story.retold(tell(story, player)) == story.retold(tell(story, ByRules()))


def test_the_stories_played_use_every_word() -> None:
    used = {command.word for name in PLAYED for block in STORIES[name].blocks for command in block.commands}
    assert sorted(set(WORDS) - used) == []
