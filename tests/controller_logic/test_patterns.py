"""Patterns of subscriptions to clients' metrics."""

import pytest

from state.decisions import EntityDecision
from tests.controller_logic.test_entities import METRICS, alter, world


@pytest.mark.parametrize("depth", [0, 300, 600])
def test_the_answer_about_a_pattern_does_not_depend_on_how_deep_the_caller_is(depth: int) -> None:
    started = world()

    def asked(groups: int, deeper: int) -> str:
        if deeper:
            return asked(groups, deeper - 1)
        # Python remembers compiled patterns.
        pattern = f"{'(' * groups}a{depth}{')' * groups}"
        return alter(started, "client_metrics", METRICS, {"match": f"client_id={pattern}"})

    assert [asked(50, depth), asked(51, depth)] == ["NONE", "INVALID_CONFIG"]


@pytest.mark.parametrize(
    ("match", "error"),
    [
        (f"client_id={'a' * 990}", "NONE"),
        (f"client_id={'a' * 991}", "INVALID_CONFIG"),
        ("client_id=a, client_software_name=b", "NONE"),
        ("client_id=a=b", "INVALID_CONFIG"),
    ],
)
def test_a_pattern_has_an_end_and_one_equals_sign(match: str, error: str) -> None:
    assert alter(world(), "client_metrics", METRICS, {"match": match}) == error


def test_values_are_kept_in_order_of_name() -> None:
    started = world()
    assert alter(started, "client_metrics", METRICS, {"metrics": "a"}) == "NONE"
    assert alter(started, "client_metrics", METRICS, {"match": "client_id=a", "interval.ms": 1_000}) == "NONE"
    assert list(started.one(EntityDecision).values) == ["interval.ms", "match", "metrics"]
