"""The voters of the metadata quorum in the state: checked, kept, and relied on by brokers."""

from typing import Any

import pytest

from state.decisions import Answer, EntityDecision, Rejected
from state.entity import VOTERS, VOTERS_ID
from state.features import KRAFT_VERSION
from state.metadata_format import VOTERS_FORMAT
from state.reason import Reason
from state.rules import VOTERS_RULES
from tests.controller_logic import test_acls
from tests.controller_logic.test_entities import alter, held
from tests.support.world import World

BOTH = {"100": "CONTROLLER://a:9093", "101": "CONTROLLER://b:9093,TLS://b:9094"}
KNOWS = [{"name": KRAFT_VERSION, "min_version": 0, "max_version": 1}]


def world(rules_version: int = VOTERS_RULES, metadata_format: int = VOTERS_FORMAT) -> World:
    return test_acls.world(rules_version, metadata_format)


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


def test_all_brokers_must_know_voters_in_the_log_from_then_on() -> None:
    started = world()
    started.join(1, behind_gateway=True, features=[])
    assert voters(started, BOTH) == "INVALID_UPDATE_VERSION"
    started = world()
    started.join(1, behind_gateway=True, features=KNOWS)
    assert voters(started, BOTH) == "NONE"
    started.publish("broker_register", broker=2, incarnation="i", behind_gateway=True, features=[], request_id="r")
    answer = started.one(Answer)
    assert (answer.error, answer.message) == (
        "UNSUPPORTED_VERSION",
        "kraft.version has level 1: broker 2 does not support the feature",
    )
    started.publish("broker_register", broker=2, incarnation="i", behind_gateway=True, features=KNOWS, request_id="r")
    assert started.error == "NONE"


@pytest.mark.parametrize(
    ("rules_version", "metadata_format"), [(VOTERS_RULES - 1, VOTERS_FORMAT), (VOTERS_RULES, VOTERS_FORMAT - 1)]
)
def test_older_rules_and_older_gateways_have_no_voters(rules_version: int, metadata_format: int) -> None:
    started = world(rules_version, metadata_format)
    started.publish("alter_entity", entity_type=VOTERS, names={}, values=BOTH, request_id="q")
    assert held(started) == {}
    if rules_version < VOTERS_RULES:
        assert started.one(Rejected).reason == Reason.REQUEST_REFUSED
    else:
        assert started.error == "UNSUPPORTED_VERSION"
