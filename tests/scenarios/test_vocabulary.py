"""Every word is used by a story and shown in its docstring, and no story uses another."""

import re

import pytest

from tests.scenarios.story import all_stories, parse
from tests.scenarios.vocabulary import WORDS


def test_every_word_is_used_in_a_story() -> None:
    used = {command.word for story in all_stories() for block in story.blocks for command in block.commands}
    assert sorted(used) == sorted(WORDS)


@pytest.mark.parametrize("name", sorted(WORDS))
def test_every_word_shows_how_it_is_used(name: str) -> None:
    assert re.search(rf"``{name}\b[^`]*``", WORDS[name].__doc__ or "")


def test_every_story_says_what_it_shows() -> None:
    for story in all_stories():
        assert story.comment[0].endswith((".", ":", ",")) or len(story.comment) > 1, story.name


def test_a_story_is_parsed_as_written() -> None:
    text = "# One.\ntick\n----\nno decision\n\n# a note\ntick 2s\n----\na\n  b\n"
    assert parse("one", text).text == text


@pytest.mark.parametrize("text", ["tick\n----\n", "# One.\ntick\n"])
def test_a_story_without_a_comment_or_a_rule_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="one"):
        parse("one", text)
