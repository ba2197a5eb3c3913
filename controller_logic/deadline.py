"""Refuse requests that are too old. Their senders were told of the time-out, so they must not be carried out later."""

from controller_logic.batch import Batch
from state.event import AdminEvent
from state.events import Logged


def is_over(batch: Batch, event: AdminEvent) -> bool:
    """Return whether a request was found undecided after its time-out, and answer it if so.

    The event log alone does not say how late an event is decided. That is known only if a job took over and found the
    event undecided. The wait began at the event's own time or at its entry to the bus, whichever is earlier. If the two
    clocks differ, the earlier time is the safe one.
    """
    if event.timeout_ms is None or batch.logged.found_ms is None:
        return False
    waited_ms = _waited_ms(event, batch.logged.entered_ms, batch.logged.found_ms)
    if waited_ms < event.timeout_ms:
        return False
    message = f"it is not done: nobody decided it for {waited_ms} ms, and {event.timeout_ms} ms were allowed"
    batch.recorder.answer("REQUEST_TIMED_OUT", message)
    return True


def expires_ms(logged: Logged) -> int | None:
    """Return the time by the bus's clock until which an event may be decided; None if any time is right.

    Any time is right if the rules already know that the request timed out. Only the bus's clock counts here, because
    otherwise an author whose clock is behind would delay all events.
    """
    event = logged.event
    if not isinstance(event, AdminEvent) or event.timeout_ms is None or logged.entered_ms is None:
        return None
    if logged.found_ms is not None and _waited_ms(event, logged.entered_ms, logged.found_ms) >= event.timeout_ms:
        return None
    return logged.entered_ms + event.timeout_ms


def _waited_ms(event: AdminEvent, entered_ms: int | None, found_ms: int) -> int:
    sent_ms = event.time_ms if entered_ms is None else min(event.time_ms, entered_ms)
    return found_ms - sent_ms
