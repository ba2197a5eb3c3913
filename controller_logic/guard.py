"""Keep one event that the rules fail on from stopping all others."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from isrflow.controller_logic.minutes import shown
from isrflow.controller_logic.step import step
from isrflow.state.canonical import has_clash
from isrflow.state.cluster import Outcome, State
from isrflow.state.decisions import AnyDecision, Rejected
from isrflow.state.events import Logged, Progress
from isrflow.state.partition import Topic
from isrflow.state.policy import Policy
from isrflow.state.reason import Reason


def guarded_step(state: State, events: Sequence[Logged], policy: Policy, *, overrides: Mapping[str, str]) -> Outcome:
    """Do what ``step`` does; an event that it raises on is reported, and changes nothing.

    ``step`` never should, nor say two things of one partition. If it does, the batch would come again after
    each restart, and fail again: so it is taken event by event, and what the failing one would have done is
    left out.
    """
    try:
        return _checked(step(state, events, policy, overrides=overrides))
    except Exception:
        return _one_by_one(state, events, policy, overrides)


def _checked(outcome: Outcome) -> Outcome:
    if has_clash(outcome.decisions):
        raise ValueError("two decisions in one place")
    return outcome


def _one_by_one(state: State, events: Sequence[Logged], policy: Policy, overrides: Mapping[str, str]) -> Outcome:
    changes: dict[str, Topic | None] = {}
    decisions: list[AnyDecision] = []
    for logged in events:
        try:
            outcome = _checked(step(state, [logged], policy, overrides=overrides))
        except Exception as error:
            outcome = step(state, [replace(logged, event=Progress())], policy, overrides=overrides)
            decisions.append(_failed(outcome.state, logged, error))
        state = outcome.state
        changes |= outcome.changes
        decisions += outcome.decisions
    return Outcome(state, changes, decisions)


def _failed(state: State, logged: Logged, error: Exception) -> Rejected:
    return Rejected(
        seq=logged.seq,
        controller_epoch=state.cluster.controller_epoch,
        time_ms=state.cluster.clock_ms,
        reason=Reason.RULES_FAILED,
        raw=shown(logged.raw),
        field="",
        message=f"the rules failed on this event, which changed nothing: {type(error).__name__}: {error}",
    )
