"""What the engine tells itself: counts of the whole cluster, back to all shards by way of the bus."""

from collections.abc import Iterable

import msgspec

from bus.interface import Decided
from controller_logic.balance import event_of
from state.decisions import Imbalance, decode

_KIND = b'{"kind":"imbalance",'


def feedback_events(decisions: Iterable[Decided]) -> list[bytes]:
    """Make the events that a batch's decisions call for, to be published once these are committed.

    A kill in between loses a balance check, and the next one makes up for it; one that is published
    twice is taken in once.
    """
    return [msgspec.json.encode(event) for decided in decisions if (event := _event(decided.body)) is not None]


def _event(body: bytes) -> object:
    if not body.startswith(_KIND):
        return None
    decision = decode(body)
    return event_of(decision) if isinstance(decision, Imbalance) else None
