"""SCRAM credentials in the state: kept or removed as a whole, and in nothing that people read."""

from typing import Any

import pytest

from cli.decision_line import text_of
from state.decisions import Answer, EntityDecision, Rejected
from state.view import view_of
from tests.controller_logic.test_entities import BOB, CREDENTIAL, KEY, alter, held, world


def test_a_credential_is_removed_as_a_whole() -> None:
    started = world()
    assert alter(started, "scram_credential", BOB, CREDENTIAL) == "NONE"
    assert alter(started, "scram_credential", BOB, {"salt": None}) == "INVALID_REQUEST"
    assert alter(started, "scram_credential", BOB, dict.fromkeys(CREDENTIAL)) == "NONE"
    assert (started.one(EntityDecision).values, held(started)) == ({}, {})


SECRET_EVENTS = [
    {"names": "oops", "values": CREDENTIAL},
    {"names": BOB, "values": CREDENTIAL | {"salt": ["c2FsdA=="]}},
]


@pytest.mark.parametrize("given", SECRET_EVENTS)
def test_no_refusal_shows_a_secret(given: dict[str, Any]) -> None:
    started = world()
    asked = {"entity_type": "scram_credential", "names": given["names"], "values": given["values"]}
    started.publish_raw(started.text_of("alter_entity", **asked, request_id="q"))
    rejected = started.one(Rejected)
    assert rejected.raw.startswith("(withheld")
    assert not any(secret in f"{started.decisions}" for secret in (KEY, "c2FsdA=="))


def test_the_view_of_the_state_shows_no_secret() -> None:
    started = world()
    assert alter(started, "scram_credential", BOB, CREDENTIAL) == "NONE"
    [shown] = view_of(started.state.cluster, [])["entities"]
    assert shown["values"] == dict.fromkeys(CREDENTIAL, "[hidden]")
    assert KEY not in text_of(started.one(EntityDecision))


@pytest.mark.parametrize("values", [{"colour": "blue"}, {"salt": "c2FsdA=="}])
def test_a_refusal_names_the_parts_of_a_credential_in_order(values: dict[str, str]) -> None:
    started = world()
    assert alter(started, "scram_credential", BOB, values) == "INVALID_REQUEST"
    expected = "a SCRAM credential consists of iterations, salt, server_key, stored_key"
    assert started.one(Answer).message == expected


def test_iterations_are_a_number_whatever_their_length() -> None:
    assert (
        alter(world(), "scram_credential", BOB, CREDENTIAL | {"iterations": "9" * 5_000}) == "UNACCEPTABLE_CREDENTIAL"
    )
