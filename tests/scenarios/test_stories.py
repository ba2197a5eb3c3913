"""Every story gives the written output, through the rules and the operators; ISRFLOW_REWRITE=1 rewrites the outputs."""

import contextlib
import os
from functools import cache
from pathlib import Path

import pytest

from state.rules import FIRST_RULES
from tests.scenarios import script
from tests.scenarios.by_operators import ByOperators
from tests.scenarios.by_rules import ByRules
from tests.scenarios.complaints import MARK
from tests.scenarios.story import Story, all_stories, path_of
from tests.scenarios.telling import tell
from tests.support.by_reference import by_reference

STORIES = all_stories()
# Stories that version 1 of the rules decides or words differently; all others must give the same output.
TOLD_OTHERWISE = {
    "brokers/only_the_engine_moves_time",
    "config/acls",
    "config/misspelt",
    "config/refused",
    "controller/settings_that_cannot_be",
    "deletion/created_again",
    "deletion/nothing_else_on_a_topic_that_goes",
    "deletion/several_partitions_behind_gateways",
    "isr/several_at_once",
    "isr/written_with_one_that_bounced",
    "log_dirs/a_second_one_is_added",
    "log_dirs/assigned_to_a_failed_one",
    "log_dirs/ends_a_reassignment",
    "log_dirs/fails_with_another_wish",
    "log_dirs/found_again_without_a_leader",
    "log_dirs/left_behind_and_brought_back",
    "log_dirs/left_behind_by_an_unregistered_broker",
    "log_dirs/left_behind_by_the_last_in_sync",
    "log_dirs/left_behind_in_one_of_several",
    "log_dirs/moved_by_a_reassignment",
    "log_dirs/one_fails",
    "log_dirs/only_the_only_isr_member",
    "log_dirs/refused",
    "log_dirs/registers_again_in_the_same_process",
    "reassign/cancelled_for_a_deletion",
    "reassign/deletion_is_asked_for_again",
    "reassign/deletion_waits",
    "reassign/topic_is_deleted_meanwhile",
    "shutdown/new_topics_meanwhile",
    "topics/bad_config",
    "topics/exists",
    "topics/factor_counts_active_brokers",
    "topics/factor_counts_registered_brokers_behind_a_gateway",
    "unclean/at_return_without_a_log",
    "walks/v2_delete_for_dead_brokers",
}
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
def test_version_1_of_the_rules_differs_only_in_the_listed_stories(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = by_rules(story)
    monkeypatch.setattr(script, "NEWEST_RULES", FIRST_RULES)
    assert (story.retold(tell(story, ByRules())) != told) == (story.name in TOLD_OTHERWISE)


@every_story
def test_a_rule_asked_about_each_partition_gives_the_written_output(story: Story) -> None:
    told = by_rules(story)
    with by_reference():
        assert story.retold(tell(story, ByRules())) == told


@every_story
def test_the_operators_give_the_written_output(story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = by_rules(story)
    # The topics of stories are small. Here they are packed like large ones; histories leave them as they are.
    monkeypatch.setattr("state.slices.PLAIN_PARTITIONS_MAX", 0)
    with contextlib.closing(ByOperators(tmp_path / "bus.db")) as player:
        assert story.retold(tell(story, player)) == told
