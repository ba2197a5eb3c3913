"""What a job found undecided when it claimed: nobody decides that in time any more.

A claim's event says up to which seq was decided by then (``decided_seq``). All between that and the claim itself was
decided after the claim, however much later than it came.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from state.event_text import decode
from state.events import ControllerStarted


class Found(NamedTuple):
    """Name the events after ``after`` and before ``before``, and when they were found."""

    after: int
    before: int
    time_ms: int


def found_by(seq: int, raw: bytes, entered_ms: int | None) -> Found | None:
    """Read from a claim's event what it found; None where it does not say."""
    event = decode(raw)
    if not isinstance(event, ControllerStarted) or event.decided_seq is None:
        return None
    return Found(event.decided_seq, seq, event.time_ms if entered_ms is None else entered_ms)


def found_ms(seq: int, found: Sequence[Found]) -> int | None:
    """Say when an event was last found undecided; None when it never was."""
    return max((one.time_ms for one in found if one.after < seq < one.before), default=None)


def found_in(entries: Iterable[tuple[int, bytes, int | None, bool | None]]) -> list[Found]:
    """Collect what the claims of a log found; one that its bus did not know is none."""
    # Without this, each event would be read twice.
    started = (one for one in entries if b"decided_seq" in one[1] and one[3] is not False)
    return [found for seq, raw, entered_ms, _ in started if (found := found_by(seq, raw, entered_ms)) is not None]
