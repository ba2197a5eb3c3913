"""Tell what was asked too long ago: who asked was told that it timed out, and must not get it later."""

from controller_logic.batch import Batch
from state.event import AdminEvent
from state.events import Logged


def is_over(batch: Batch, event: AdminEvent) -> bool:
    """Say whether a request was found undecided after its time, and answer it so.

    The log alone does not tell how late an event is decided: that it waited for a controller is known where one took
    over, which found it. Who asked began to wait before the event came to the bus; where the two clocks differ
    the earlier time counts, because it is the safe one.
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
    """Say up to when, by the bus's clock, an event may be decided as it stands; None where that does not matter.

    It does not where the rules know already that its time is over. The bus's clock alone counts here: an author whose
    own is behind would make everybody wait.
    """
    event = logged.event
    if not isinstance(event, AdminEvent) or event.timeout_ms is None or logged.entered_ms is None:
        return None
    if logged.found_ms is not None and _waited_ms(event, logged.entered_ms, logged.found_ms) >= event.timeout_ms:
        return None
    return logged.entered_ms + event.timeout_ms


def _waited_ms(event: AdminEvent, entered_ms: int | None, found_ms: int) -> int:
    asked_ms = event.time_ms if entered_ms is None else min(event.time_ms, entered_ms)
    return found_ms - asked_ms
