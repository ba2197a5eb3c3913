"""Counts of the whole cluster, which the engine publishes as events, so that all shards see them."""

from collections.abc import Iterable

import msgspec

from bus.interface import Decided
from controller_logic.balance import event_of
from state.decisions import Imbalance, decode

_KIND = b'{"kind":"imbalance",'


def feedback_events(decisions: Iterable[Decided]) -> list[bytes]:
    """Return the events that a batch's decisions call for. Publish them after the decisions are committed.

    If the process is killed between the two, one balance check is lost, and the next one makes up for it. An event that
    is published twice takes effect once.
    """
    return [msgspec.json.encode(event) for decided in decisions if (event := _event(decided.body)) is not None]


def _event(body: bytes) -> object:
    if not body.startswith(_KIND):
        return None
    decision = decode(body)
    return event_of(decision) if isinstance(decision, Imbalance) else None
