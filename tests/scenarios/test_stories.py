"""Every story gives the written output, through the rules and the operators; ISRFLOW_REWRITE=1 rewrites the outputs."""

import contextlib
import os
from functools import cache
from pathlib import Path

import pytest

from tests.scenarios.by_operators import ByOperators
from tests.scenarios.by_rules import ByRules
from tests.scenarios.complaints import MARK
from tests.scenarios.story import Story, all_stories, path_of
from tests.scenarios.telling import tell
from tests.support.by_reference import by_reference

STORIES = all_stories()
every_story = pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)


@cache
def by_rules(story: Story) -> str:
    """Return a story's text as the rules play it. Four tests compare with it."""
    return story.retold(tell(story, ByRules()))


@every_story
def test_the_rules_give_the_written_output(story: Story) -> None:
    told = by_rules(story)
    if os.environ.get("ISRFLOW_REWRITE"):
        path_of(story.name).write_text(told, "utf-8")
    else:
        assert told == story.text
    assert MARK not in told


@every_story
def test_a_rule_asked_about_each_partition_gives_the_written_output(story: Story) -> None:
    told = by_rules(story)
    with by_reference():
        assert story.retold(tell(story, ByRules())) == told


@every_story
def test_the_operators_give_the_written_output(story: Story, tmp_path: Path) -> None:
    told = by_rules(story)
    with contextlib.closing(ByOperators(tmp_path / "bus.db")) as player:
        assert story.retold(tell(story, player)) == told
