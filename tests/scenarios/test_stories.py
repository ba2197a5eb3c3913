"""Every story comes out as it is written, whoever plays it; ISRFLOW_REWRITE=1 writes the outputs anew."""

import contextlib
import os
from pathlib import Path

import pytest

from tests.scenarios.by_operators import ByOperators
from tests.scenarios.by_rules import ByRules
from tests.scenarios.complaints import MARK
from tests.scenarios.story import Story, all_stories, path_of
from tests.scenarios.telling import tell

STORIES = all_stories()
every_story = pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)


@every_story
def test_by_rules(story: Story) -> None:
    told = story.retold(tell(story, ByRules()))
    if os.environ.get("ISRFLOW_REWRITE"):
        path_of(story.name).write_text(told, "utf-8")
    else:
        assert told == story.text
    assert MARK not in told


@every_story
def test_by_operators(story: Story, tmp_path: Path) -> None:
    with contextlib.closing(ByOperators(tmp_path / "bus.db")) as player:
        assert story.retold(tell(story, player)) == story.retold(tell(story, ByRules()))
