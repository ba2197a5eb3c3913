"""Read decisions from a bus in whole events: all decisions on an event, or none of them."""

from collections.abc import Iterable
from itertools import groupby

import msgspec

from brokers.gateways.kraft.log.errors import UnknownFormatError
from bus.interface import AFTER_ALL_OF, DECISIONS_BYTES_MAX, Bus, Decided
from state.decisions import AnyDecision, decode

CHUNK = 5_000
# A chunk ends where the next decision would exceed the limit in bytes. No decision takes half of that limit, so a chunk
# below the other half was not cut.
SURELY_UNCUT_BYTES = DECISIONS_BYTES_MAX // 2


def whole_events(bus: Bus, after: int) -> list[list[AnyDecision]]:
    """Return the decisions on the events after ``after``, one list per event; none at the end.

    One call returns some thousands of decisions, or a single event that has more.

    Raises ``BusError``, and ``UnknownFormatError`` for a kind of decision that only later versions know. It may become
    records in the metadata log, so it cannot be skipped.
    """
    chunk = bus.decisions((after, AFTER_ALL_OF), CHUNK)
    groups = [list(group) for _, group in groupby(chunk, key=lambda decided: decided.seq)]
    if not _ends_within_an_event(bus, chunk):
        return [_decoded(group) for group in groups]
    if len(groups) == 1:
        return [_large_event(bus, chunk)]
    # The last event is read again by the next call.
    return [_decoded(group) for group in groups[:-1]]


def _ends_within_an_event(bus: Bus, chunk: list[Decided]) -> bool:
    """Say whether ``chunk`` was cut, by count or bytes, between two decisions on one event."""
    is_uncut = len(chunk) < CHUNK and sum(len(decided.body) for decided in chunk) < SURELY_UNCUT_BYTES
    if not chunk or is_uncut:
        return False
    following = bus.decisions((chunk[-1].seq, chunk[-1].idx), 1)
    return bool(following) and following[0].seq == chunk[-1].seq


def _large_event(bus: Bus, chunk: list[Decided]) -> list[AnyDecision]:
    """Read all decisions on the event that begins with ``chunk``.

    The text of each chunk is freed before the next one is read, because a large event should not be in memory twice.
    """
    seq = chunk[0].seq
    decisions: list[AnyDecision] = []
    while chunk and chunk[0].seq == seq:
        decisions += _decoded(decided for decided in chunk if decided.seq == seq)
        chunk = bus.decisions((seq, chunk[-1].idx), CHUNK) if chunk[-1].seq == seq else []
    return decisions


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
