"""Counts of the whole cluster, which the engine publishes as events, so that all shards see them."""

from collections.abc import Sequence

import msgspec

from bus.decided_runs import runs_in
from bus.interface import Decided
from controller_logic.balance import event_of
from state.decisions import Imbalance, decode

_KIND = b"imbalance"


def feedback_events(decisions: Sequence[Decided]) -> list[bytes]:
    """Return the events that a batch's decisions call for. Publish them after the decisions are committed.

    If the process is killed between the two, one balance check is lost, and the next one makes up for it. An event that
    is published twice takes effect once.
    """
    found = [decode(run.lines) for run in runs_in(decisions) if run.kind == _KIND]
    return [msgspec.json.encode(event_of(decision)) for decision in found if isinstance(decision, Imbalance)]
