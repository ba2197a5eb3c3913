"""What a job found undecided when it claimed.

A claim's event says up to which seq former jobs had decided (``decided_seq``). All events between that and the claim
were decided after the claim, however long before it they came.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from state.event_text import decode
from state.events import ControllerStarted


class Found(NamedTuple):
    """The events that a claim found undecided: after < seq < before."""

    after: int
    before: int
    # When they were found.
    time_ms: int


def found_by(seq: int, raw: bytes, entered_ms: int | None) -> Found | None:
    """Read from a claim's event what the claim found; None if the event does not say."""
    event = decode(raw)
    if not isinstance(event, ControllerStarted) or event.decided_seq is None:
        return None
    return Found(event.decided_seq, seq, event.time_ms if entered_ms is None else entered_ms)


def found_ms(seq: int, found: Sequence[Found]) -> int | None:
    """Return the time when an event was last found undecided; None if it never was."""
    return max((one.time_ms for one in found if one.after < seq < one.before), default=None)


def found_in(entries: Iterable[tuple[int, bytes, int | None, bool | None]]) -> list[Found]:
    """Collect what the claims of an event log found, except events that its bus did not know as claims."""
    # Looking at the bytes first keeps each event from being decoded twice.
    started = (one for one in entries if b"decided_seq" in one[1] and one[3] is not False)
    return [found for seq, raw, entered_ms, _ in started if (found := found_by(seq, raw, entered_ms)) is not None]
