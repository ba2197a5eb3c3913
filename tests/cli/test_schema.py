"""The printed schemas are valid JSON Schema, and accept what the engine accepts and writes."""

import json
from functools import cache
from typing import Any, Literal

import pytest
from jsonschema import Draft202012Validator

from cli.schema import schema
from state.decisions import AnyDecision
from state.event_text import decode
from state.events import AnyEvent, Malformed
from tests.cli.conftest import Isrflow
from tests.histories.recorded import all_histories

LINES_MAX = 400


@cache
def validator(of: Literal["events", "decisions"]) -> Draft202012Validator:
    Draft202012Validator.check_schema(schema(of))
    return Draft202012Validator(schema(of))


def kinds(types: Any) -> set[str]:
    return {str(kind.__struct_config__.tag) for kind in types.__args__}


@pytest.mark.parametrize(("of", "types"), [("events", AnyEvent), ("decisions", AnyDecision)])
def test_the_command_prints_a_schema_of_every_kind(of: str, types: Any, isrflow: Isrflow) -> None:
    printed = json.loads(isrflow("schema", of).stdout)
    definitions = printed["$defs"].values()
    shown = {one["properties"]["kind"]["enum"][0] for one in definitions if "kind" in one.get("properties", {})}
    assert shown == kinds(types)
    assert r"\Z" not in json.dumps(printed), "other languages do not know it"


@pytest.mark.parametrize("name", ["fail-over", "malformed-types", "world", "malformed-text"])
def test_the_schema_of_events_accepts_what_the_engine_reads_and_nothing_else(name: str) -> None:
    [history] = [one for one in all_histories() if one.name == name]
    wrong = []
    for _, raw in history.events[:LINES_MAX]:
        try:
            event = json.loads(raw)
        except (ValueError, RecursionError):
            continue
        if validator("events").is_valid(event) == isinstance(decode(raw), Malformed):
            wrong.append(raw)
    assert wrong == []


@pytest.mark.parametrize("name", ["fail-over", "malformed-types", "world"])
def test_the_schema_of_decisions_accepts_what_the_engine_writes(name: str) -> None:
    [history] = [one for one in all_histories() if one.name == name]
    for body in history.decisions[:LINES_MAX]:
        validator("decisions").validate(json.loads(body))


def test_the_schema_of_decisions_refuses_an_unknown_kind() -> None:
    assert not validator("decisions").is_valid({"kind": "leader"})
