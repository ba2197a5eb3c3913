"""Read decisions from a bus by whole events, never a part of the decisions on one."""

from collections.abc import Iterable
from itertools import groupby

import msgspec

from brokers.gateways.kraft.log.errors import UnknownFormatError
from bus.interface import Bus, Decided
from state.decisions import AnyDecision, decode

CHUNK = 5_000
AFTER_ALL_OF = 2**31


def whole_events(bus: Bus, after: int) -> list[list[Decided]]:
    """Return the decisions on the events after ``after``, one list per event; none at the end.

    They are some thousands of decisions, or more if one event has more. Raises ``BusError``.
    """
    read = chunk = bus.decisions((after, AFTER_ALL_OF), CHUNK)
    while len(chunk) == CHUNK and read[0].seq == read[-1].seq:
        chunk = bus.decisions((read[-1].seq, read[-1].idx), CHUNK)
        read = read + chunk
    groups = [list(group) for _, group in groupby(read, key=lambda decided: decided.seq)]
    # A full chunk may end within an event, so its last event is read again by the next call.
    return groups[:-1] if len(chunk) == CHUNK else groups


def decoded(group: Iterable[Decided]) -> list[AnyDecision]:
    """Decode the decisions on one event.

    Raises ``UnknownFormatError`` for a kind that a later version has. Its records may belong into the metadata log, so
    it cannot be passed over.
    """
    return [_decoded(decided) for decided in group]


def _decoded(decided: Decided) -> AnyDecision:
    try:
        decision: AnyDecision = decode(decided.body)
    except msgspec.ValidationError as error:
        raise UnknownFormatError(
            f"decision {decided.seq} cannot be read by this isrflow ({error}): start a newer isrflow"
        ) from error
    return decision
