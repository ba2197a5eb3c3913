"""Delegation tokens in the state: made complete, renewed, ended by request and by time."""

import json
from typing import Any

import pytest

from controller_logic import entities
from controller_logic.replay import decide
from state.decisions import Answer, EntityDecision
from state.entity import TOKEN, TOKEN_EXPIRY, TOKEN_ID
from state.policy import Policy
from state.reason import Reason
from tests.controller_logic import test_acls
from tests.controller_logic.test_entities import alter, held, quota
from tests.support.world import World

ID: dict[str, str | None] = {TOKEN_ID: "AAAAAAAAAAAAAAAAAAAAbQ"}
OTHER: dict[str, str | None] = {TOKEN_ID: "AAAAAAAAAAAAAAAAAAAAcQ"}
# The clock of a world begins at 1,000.
VALUES = {
    "owner": "User:alice",
    "requester": "User:admin",
    "renewers": '["User:bob"]',
    "issue_timestamp_ms": "1000",
    "max_timestamp_ms": "90000",
    TOKEN_EXPIRY: "30000",
}
WHOLE = dict.fromkeys(VALUES)


def world() -> World:
    return test_acls.world()


def token(started: World, values: dict[str, Any], names: dict[str, str | None] = ID, **more: Any) -> str:
    return alter(started, TOKEN, names, values, **more)


def test_a_token_is_made_renewed_and_ended() -> None:
    started = world()
    assert token(started, VALUES, principal="User:admin") == "NONE"
    decision = started.one(EntityDecision)
    assert (decision.names, decision.values, decision.principal) == (ID, VALUES, "User:admin")
    assert token(started, {TOKEN_EXPIRY: "90000"}) == "NONE"
    assert started.one(EntityDecision).values == VALUES | {TOKEN_EXPIRY: "90000"}
    assert token(started, WHOLE) == "NONE"
    assert started.one(EntityDecision).values == {}
    assert held(started) == {}


@pytest.mark.parametrize(
    ("names", "values", "error"),
    [
        ({}, VALUES, "INVALID_REQUEST"),
        (ID | {"user": "alice"}, VALUES, "INVALID_REQUEST"),
        ({TOKEN_ID: "short"}, VALUES, "INVALID_REQUEST"),
        ({TOKEN_ID: None}, VALUES, "INVALID_REQUEST"),
        (ID, VALUES | {"hmac": "c2VjcmV0"}, "INVALID_REQUEST"),
        (ID, VALUES | {"owner": "alice"}, "INVALID_REQUEST"),
        (ID, VALUES | {"renewers": "User:bob"}, "INVALID_REQUEST"),
        (ID, VALUES | {"renewers": '["bob"]'}, "INVALID_REQUEST"),
        (ID, VALUES | {"hmac": '["User:bob"]'}, "INVALID_REQUEST"),
        (ID, VALUES | {"issue_timestamp_ms": "-1"}, "INVALID_REQUEST"),
        # The same number in other digits, which Python reads too.
        (ID, VALUES | {"issue_timestamp_ms": "\u0661\u0660\u0660\u0660"}, "INVALID_REQUEST"),
        (ID, VALUES | {TOKEN_EXPIRY: str(2**63)}, "INVALID_REQUEST"),
        (ID, VALUES | {"max_timestamp_ms": str(2**63)}, "INVALID_REQUEST"),
        (ID, VALUES | {"renewers": json.dumps(["User:b"] * 1_001)}, "INVALID_REQUEST"),
        (ID, VALUES | {TOKEN_EXPIRY: "90001"}, "INVALID_REQUEST"),
        (ID, {"owner": "User:alice"}, "INVALID_REQUEST"),
        (ID, {TOKEN_EXPIRY: "30000"}, "DELEGATION_TOKEN_NOT_FOUND"),
        (ID, WHOLE, "DELEGATION_TOKEN_NOT_FOUND"),
    ],
)
def test_what_is_no_token_is_refused(names: dict[str, str | None], values: dict[str, Any], error: str) -> None:
    started = world()
    assert token(started, values, names) == error
    assert (started.all(EntityDecision), held(started)) == ([], {})


@pytest.mark.parametrize(
    "values",
    [{"max_timestamp_ms": str(2**63 - 1)}, {"renewers": json.dumps(["User:b"] * 1_000, separators=(",", ":"))}],
)
def test_the_bounds_of_a_token_are_allowed(values: dict[str, Any]) -> None:
    started = world()
    assert token(started, VALUES | values) == "NONE"
    assert started.one(EntityDecision).values == VALUES | values


@pytest.mark.parametrize("values", [{"owner": "User:eve"}, {"max_timestamp_ms": "99999"}, {"renewers": '["User:eve"]'}])
def test_only_the_expiry_of_a_token_changes(values: dict[str, Any]) -> None:
    started = world()
    token(started, VALUES)
    assert token(started, values) == "INVALID_REQUEST"
    assert started.all(EntityDecision) == []


def test_a_token_is_removed_at_the_first_tick_after_its_time() -> None:
    started = world()
    token(started, VALUES | {TOKEN_EXPIRY: "20000"})
    token(started, VALUES, OTHER)
    alter(started, "client_quota", {"user": "alice"}, {"producer_byte_rate": 1})
    started.tick(20_000 - started.now)
    assert started.all(EntityDecision) == [], "a token is good until its expiry has passed"
    started.tick(1)
    decision = started.one(EntityDecision)
    assert (decision.names, decision.values, decision.reason) == (ID, {}, Reason.TOKEN_EXPIRED)
    assert token(started, {TOKEN_EXPIRY: "50000"}) == "DELEGATION_TOKEN_NOT_FOUND"
    started.tick(20_000)
    assert [one.names for one in started.all(EntityDecision)] == [OTHER]
    assert [one.entity_type for one in started.state.cluster.entities.values()] == ["client_quota"]


def test_tokens_whose_time_ends_together_are_removed_by_one_tick() -> None:
    started = world()
    token(started, VALUES | {TOKEN_EXPIRY: "20000"})
    token(started, VALUES | {TOKEN_EXPIRY: "20001"}, OTHER)
    started.tick(60_000)
    assert [one.names for one in started.all(EntityDecision)] == [ID, OTHER]
    assert (held(started), started.state.cluster.clock_ms) == ({}, started.now)


def test_tokens_take_no_room_from_other_entities(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entities, "ENTITIES_MAX", 1)
    started = world()
    assert [token(started, VALUES), token(started, VALUES, OTHER)] == ["NONE", "POLICY_VIOLATION"]
    assert [quota(started, {"user": user}) for user in ("alice", "bob")] == ["NONE", "POLICY_VIOLATION"]
    assert token(started, WHOLE) == "NONE"


def test_a_replay_in_any_number_of_shards_removes_the_same_tokens() -> None:
    started = world()
    token(started, VALUES)
    started.tick(40_000)
    log = list(enumerate(started.log, start=1))
    decided = [decide(log, Policy(), shards=shards).decisions for shards in (1, 3)]
    assert decided[0] == decided[1]
    assert sum("TOKEN_EXPIRED" in str(one) for one in decided[0]) == 1


@pytest.mark.parametrize("values", [{"colour": "[]"}, {"renewers": "[]"}])
def test_a_refusal_names_the_parts_of_a_token_in_order(values: dict[str, str]) -> None:
    started = world()
    assert alter(started, TOKEN, ID, values) == "INVALID_REQUEST"
    assert started.one(Answer).message == (
        "a delegation token consists of expiry_timestamp_ms, issue_timestamp_ms, max_timestamp_ms, owner, renewers, "
        "requester"
    )


@pytest.mark.parametrize(
    ("times", "error"),
    [
        ({"issue_timestamp_ms": "90000"}, "NONE"),
        ({TOKEN_EXPIRY: "90000"}, "NONE"),
        ({"issue_timestamp_ms": "90001"}, "INVALID_REQUEST"),
        ({TOKEN_EXPIRY: "90001"}, "INVALID_REQUEST"),
        ({"max_timestamp_ms": "9" * 5_000}, "INVALID_REQUEST"),
    ],
)
def test_the_last_time_of_a_token_is_its_greatest(times: dict[str, str], error: str) -> None:
    assert alter(world(), TOKEN, ID, VALUES | times) == error
