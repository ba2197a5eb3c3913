"""Read decisions from a bus in whole events: all decisions on an event, or none of them."""

from collections.abc import Iterable
from itertools import groupby

import msgspec

from brokers.engine.alike_decisions import GivenDecision, decoded
from bus.interface import AFTER_ALL_OF, DECISIONS_BYTES_MAX, Bus, Decided, DecidedColumns
from isrflow.decision_rows import last_place

CHUNK = 5_000
# What a bus returns for ``CHUNK`` decisions.
Row = Decided | DecidedColumns
# A chunk that is cut by its bytes ends before the decision that would exceed their limit, or with it. No decision takes
# half of that limit, so a chunk below the other half was not cut.
SURELY_UNCUT_BYTES = DECISIONS_BYTES_MAX // 2


class UnknownDecisionError(Exception):
    """This version does not know a decision's kind. It ends the gateway, because it must not guess."""


def whole_events(bus: Bus, after: int) -> list[list[GivenDecision]]:
    """Return the decisions on the events after ``after``, one list per event; none at the end.

    One call returns some thousands of decisions, or a single event that has more.

    Raises ``BusError``, and ``UnknownDecisionError`` for a kind that this version does not know. It may become records,
    so it cannot be skipped.
    """
    chunk = bus.decided_columns((after, AFTER_ALL_OF), CHUNK)
    groups = [list(group) for _, group in groupby(chunk, key=lambda row: row.seq)]
    if not _ends_within_an_event(bus, chunk):
        return [_decoded(group) for group in groups]
    if len(groups) == 1:
        return [_large_event(bus, chunk)]
    # The last event is read again by the next call.
    return [_decoded(group) for group in groups[:-1]]


def _ends_within_an_event(bus: Bus, chunk: list[Row]) -> bool:
    """Return whether ``chunk`` was cut, by count or bytes, between two decisions on one event."""
    is_uncut = sum(map(_count, chunk)) < CHUNK and sum(map(_size, chunk)) < SURELY_UNCUT_BYTES
    if not chunk or is_uncut:
        return False
    following = bus.decisions(last_place(chunk[-1]), 1)
    return bool(following) and following[0].seq == chunk[-1].seq


def _large_event(bus: Bus, chunk: list[Row]) -> list[GivenDecision]:
    """Read all decisions on the event that begins with ``chunk``.

    The text of each chunk is freed before the next one is read, because a large event should not be in memory twice.
    """
    seq = chunk[0].seq
    decisions: list[GivenDecision] = []
    while chunk and chunk[0].seq == seq:
        decisions += _decoded(row for row in chunk if row.seq == seq)
        chunk = bus.decided_columns(last_place(chunk[-1]), CHUNK) if chunk[-1].seq == seq else []
    return decisions


def _count(row: Row) -> int:
    return 1 if isinstance(row, Decided) else row.block.decision_count


def _size(row: Row) -> int:
    return len(row.body) if isinstance(row, Decided) else row.block.byte_count


def _decoded(rows: Iterable[Row]) -> list[GivenDecision]:
    found: list[GivenDecision] = []
    for row in rows:
        try:
            found += decoded(row)
        except msgspec.ValidationError as error:
            raise UnknownDecisionError(
                f"decision {row.seq} cannot be read by this isrflow ({error}): start a newer isrflow"
            ) from error
    return found
