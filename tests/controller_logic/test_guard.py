"""An event that the rules fail on is reported, changes nothing, and stops nothing."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from isrflow.controller_logic import liveness
from isrflow.controller_logic.log import decide
from isrflow.state.policy import Policy
from tests.support.worlds import recorded

BAD_SEQ = 60


def broken(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Break a rule at one event, after it has changed what it changes."""

    def breaking(draft: Any, *event: Any) -> Any:
        done = rule(draft, *event)
        if draft.seq == BAD_SEQ:
            raise KeyError("some defect")
        return done

    return breaking


def with_a_second(kind: bytes, log: list[tuple[int, bytes]]) -> tuple[list[tuple[int, bytes]], bytes]:
    """Put an early event of a kind into the log once more, at BAD_SEQ."""
    again = next(raw for seq, raw in log if seq > 12 and b'"kind":"%s"' % kind in raw)
    later = [(seq + (seq >= BAD_SEQ), raw) for seq, raw in log]
    return sorted([*later, (BAD_SEQ, again)]), again


@pytest.mark.parametrize("shards", [1, 4])
@pytest.mark.parametrize(("kind", "rule"), [(b"broker_heartbeat", "heartbeat"), (b"tick", "expire_sessions")])
def test_what_fails_is_reported_and_the_rest_is_decided(
    monkeypatch: pytest.MonkeyPatch, kind: bytes, rule: str, shards: int
) -> None:
    log, bad = with_a_second(kind, recorded(seed=3, count=200))
    expected = decide([entry for entry in log if entry[0] != BAD_SEQ], Policy()).decisions
    monkeypatch.setattr(liveness, rule, broken(getattr(liveness, rule)))
    found = decide(log, Policy(), shards=shards, batch_sizes=(25,)).decisions
    (body,) = [body for seq, _, body in found if seq == BAD_SEQ]
    said = msgspec.json.decode(body)
    assert (said["kind"], said["reason"], said["raw"]) == ("rejected", "RULES_FAILED", bad.decode())
    assert said["message"].endswith("KeyError: 'some defect'")
    assert [decision for decision in found if decision[0] != BAD_SEQ] == expected
