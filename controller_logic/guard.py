"""The guard that keeps one event on which the rules fail from stopping all others."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from controller_logic.batch import Remembered
from controller_logic.raw_text import shown
from controller_logic.step import step
from state.alike import Said, decisions_of
from state.canonical import parts_clash
from state.cluster import Changes, Outcome, State
from state.decisions import AnyDecision, Rejected
from state.events import Logged, Progress
from state.part import Part, part_of
from state.policy import Policy
from state.reason import Reason
from state.runs import parts_of


class Guarded(NamedTuple):
    """What ``step`` gave, with its decisions encoded. A decision that cannot be encoded counts as a failure too."""

    state: State
    changes: Changes
    said: list[Said]
    parts: list[Part]

    @property
    def decisions(self) -> list[AnyDecision]:
        return decisions_of(self.said)


def guarded_step(
    state: State,
    events: Sequence[Logged],
    policy: Policy,
    *,
    overrides: Mapping[str, str],
    remembered: Remembered | None = None,
) -> Guarded:
    """Do what ``step`` does. If it raises on an event, report that event and leave the state as it was.

    ``step`` should never raise, nor say two things about one partition. If it did, the batch would come again after
    each restart and fail again. So the batch is halved until the failing event stands alone, and that event is left
    out. One such event makes a batch cost about three times as much.
    """
    try:
        return _checked(step(state, events, policy, overrides=overrides, remembered=remembered))
    except MemoryError:
        # No event is at fault, and another machine could decide them all.
        raise
    except Exception as error:
        if len(events) == 1:
            return _without(state, events[0], error, policy, overrides)
    if not events:
        return Guarded(state, {}, [], [])
    half = len(events) // 2
    first = guarded_step(state, events[:half], policy, overrides=overrides)
    second = guarded_step(first.state, events[half:], policy, overrides=overrides)
    return Guarded(
        second.state,
        {**first.changes, **second.changes},
        first.said + second.said,
        first.parts + second.parts,
    )


def _checked(outcome: Outcome) -> Guarded:
    parts = parts_of(outcome.said, outcome.state.cluster.level)
    if parts_clash(parts):
        raise ValueError("two decisions in one place")
    return Guarded(outcome.state, outcome.changes, outcome.said, parts)


def _without(state: State, failed: Logged, error: Exception, policy: Policy, overrides: Mapping[str, str]) -> Guarded:
    outcome = step(state, [replace(failed, event=Progress())], policy, overrides=overrides)
    said = _failed(outcome.state, failed, error)
    return Guarded(outcome.state, outcome.changes, [said], [part_of(said)])


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
