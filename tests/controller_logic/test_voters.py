"""The voters of the metadata quorum in the state: checked, kept, and relied on by brokers."""

from typing import Any

import pytest

from state.decisions import EntityDecision
from state.entity import VOTERS, VOTERS_ID
from state.features import KRAFT_VERSION
from tests.controller_logic import test_acls
from tests.controller_logic.test_entities import alter, held
from tests.support.world import World

BOTH = {"100": "CONTROLLER://a:9093", "101": "CONTROLLER://b:9093,TLS://b:9094"}
KNOWS = [{"name": KRAFT_VERSION, "min_version": 0, "max_version": 1}]


def world() -> World:
    return test_acls.world()


def voters(started: World, values: dict[str, Any], **more: Any) -> str:
    return alter(started, VOTERS, {}, values, **more)


def test_voters_are_set_moved_and_replaced() -> None:
    started = world()
    assert voters(started, BOTH) == "NONE"
    assert started.one(EntityDecision).values == BOTH
    assert voters(started, BOTH) == "NONE"
    assert started.all(EntityDecision) == []
    assert voters(started, {"100": None, "102": "CONTROLLER://c:1"}) == "NONE"
    assert held(started) == {VOTERS_ID: {"101": BOTH["101"], "102": "CONTROLLER://c:1"}}


@pytest.mark.parametrize(
    ("names", "values", "error"),
    [
        ({"cluster": "c"}, BOTH, "INVALID_REQUEST"),
        ({}, {"x": BOTH["100"]}, "INVALID_REQUEST"),
        ({}, {"-1": BOTH["100"]}, "INVALID_REQUEST"),
        ({}, {"007": BOTH["100"]}, "INVALID_REQUEST"),
        ({}, {"\u0661": BOTH["100"]}, "INVALID_REQUEST"),
        ({}, {"2147483648": BOTH["100"]}, "INVALID_REQUEST"),
        ({}, {"100": "nowhere"}, "INVALID_REQUEST"),
        ({}, {str(voter): BOTH["100"] for voter in range(65)}, "INVALID_REQUEST"),
        ({}, dict.fromkeys(BOTH), "INVALID_UPDATE_VERSION"),
    ],
)
def test_what_cannot_be_is_refused(names: dict[str, str | None], values: dict[str, Any], error: str) -> None:
    started = world()
    voters(started, BOTH)
    assert alter(started, VOTERS, names, values) == error
    assert held(started) == {VOTERS_ID: BOTH}


def test_all_brokers_must_know_voters_in_the_log() -> None:
    started = world()
    started.join(1, behind_gateway=True, features=[])
    assert voters(started, BOTH) == "INVALID_UPDATE_VERSION"
    started = world()
    started.join(1, behind_gateway=True, features=KNOWS)
    assert voters(started, BOTH) == "NONE"
