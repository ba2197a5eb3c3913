"""The events that a job found undecided when it claimed, or between two batches.

A claim's event says up to which seq former jobs had decided (``decided_seq``). All events between that and the claim
were decided after the claim, however long before it they came. The same holds for a tick with this field. An
engine writes one after each slow batch, before it reads the next one.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from state.event_text import decode
from state.events import ControllerStarted, Tick


class Found(NamedTuple):
    """The events that a claim or a tick found undecided: after < seq < before."""

    after: int
    before: int
    # When they were found.
    time_ms: int


def found_by(seq: int, raw: bytes, entered_ms: int | None, is_claim: bool | None = None) -> Found | None:
    """Return what the event of a claim or a tick says was undecided; None if it does not say, or is no claim."""
    event = decode(raw)
    if not isinstance(event, ControllerStarted | Tick) or not isinstance(event.decided_seq, int):
        return None
    if isinstance(event, ControllerStarted) and is_claim is False:
        return None
    return Found(event.decided_seq, seq, event.time_ms if entered_ms is None else entered_ms)


def found_ms(seq: int, found: Sequence[Found]) -> int | None:
    """Return the time when an event was last found undecided; None if it never was."""
    return max((one.time_ms for one in found if one.after < seq < one.before), default=None)


def found_in(entries: Iterable[tuple[int, bytes, int | None, bool | None]]) -> list[Found]:
    """Collect what the claims and ticks of an event log found, except events that its bus did not know as claims."""
    # Looking at the bytes first keeps each event from being decoded twice.
    telling = (entry for entry in entries if b"decided_seq" in entry[1])
    return [found for entry in telling if (found := found_by(*entry)) is not None]
