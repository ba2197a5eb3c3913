"""One operation of the observed controller, as it was cut out of its log."""

from collections.abc import Sequence
from typing import NamedTuple

from brokers.shadow.causes import Why
from brokers.shadow.source import Batch
from brokers.shadow.touched import Touched
from state.observed_events import Cause, Certainty, Evidence, Results


class At(NamedTuple):
    """Where one record stands."""

    offset: int
    epoch: int
    time_ms: int


class Operation(NamedTuple):
    """One operation of the observed controller."""

    # Of its first and of its last record.
    offset: int
    last_offset: int
    epoch: int
    time_ms: int
    cause: Cause
    certainty: Certainty
    evidence: Evidence
    results: Results


class Note(NamedTuple):
    """Something that the log should not have, at an offset."""

    offset: int
    what: str


def at(batch: Batch, place: int) -> At:
    """Return where the record at a place of a batch stands."""
    return At(batch.base_offset + place, batch.epoch, batch.time_ms)


def operation(places: Sequence[At], why: Why, touched: Touched) -> Operation:
    """Make an operation of where its records stand, its cause, and what it changed."""
    first, last = places[0], places[-1]
    evidence = Evidence(broker=why.broker, silent_ms=why.silent_ms, alternatives=why.alternatives)
    return Operation(
        first.offset,
        last.offset,
        last.epoch,
        last.time_ms,
        why.cause,
        why.certainty,
        evidence,
        touched.results(),
    )
