"""Read decisions from a bus by whole events, never a part of the decisions on one."""

from collections.abc import Iterable
from itertools import groupby

import msgspec

from brokers.gateways.kraft.log.errors import UnknownFormatError
from bus.interface import AFTER_ALL_OF, Bus, Decided
from state.decisions import AnyDecision, decode

CHUNK = 5_000


def whole_events(bus: Bus, after: int) -> list[list[AnyDecision]]:
    """Return the decisions on the events after ``after``, one list per event; none at the end.

    They are some thousands of decisions, or one event that has more.

    Raises ``BusError``, and ``UnknownFormatError`` for a kind of decision that a later version has. Its records may
    belong into the metadata log, so it cannot be passed over.
    """
    chunk = bus.decisions((after, AFTER_ALL_OF), CHUNK)
    if len(chunk) == CHUNK and chunk[0].seq == chunk[-1].seq:
        return [_large_event(bus, chunk)]
    groups = [list(group) for _, group in groupby(chunk, key=lambda decided: decided.seq)]
    # A full chunk may end within an event, so its last event is read again by the next call.
    whole = groups[:-1] if len(chunk) == CHUNK else groups
    return [_decoded(group) for group in whole]


def _large_event(bus: Bus, chunk: list[Decided]) -> list[AnyDecision]:
    """Read all decisions on an event of which ``chunk`` is the beginning.

    The text of a chunk is let go before the next one is read, because an event may be larger than memory should hold
    twice.
    """
    seq = chunk[0].seq
    decisions: list[AnyDecision] = []
    while True:
        decisions += _decoded(decided for decided in chunk if decided.seq == seq)
        if len(chunk) < CHUNK or chunk[-1].seq != seq:
            return decisions
        chunk = bus.decisions((seq, chunk[-1].idx), CHUNK)


def _decoded(group: Iterable[Decided]) -> list[AnyDecision]:
    return [_decision(decided) for decided in group]


def _decision(decided: Decided) -> AnyDecision:
    try:
        decision: AnyDecision = decode(decided.body)
    except msgspec.ValidationError as error:
        raise UnknownFormatError(
            f"decision {decided.seq} cannot be read by this isrflow ({error}): start a newer isrflow"
        ) from error
    return decision
