"""Tell what was asked too long ago: who asked was told that it timed out, and must not get it later."""

from isrflow.controller_logic.draft import Draft
from isrflow.state.event import AdminEvent


def is_over(draft: Draft, event: AdminEvent) -> bool:
    """Say whether a request was found undecided after its time, and answer it so.

    The log alone does not tell how late an event is decided: that it waited for a controller is known where one took
    over, which found it. Who asked began to wait before the event came to the bus; where the two clocks differ
    the earlier time counts, because it is the safe one.
    """
    if event.timeout_ms is None or draft.found_ms is None:
        return False
    asked_ms = event.time_ms if draft.entered_ms is None else min(event.time_ms, draft.entered_ms)
    waited_ms = draft.found_ms - asked_ms
    if waited_ms < event.timeout_ms:
        return False
    message = f"it is not done: nobody decided it for {waited_ms} ms, and {event.timeout_ms} ms were allowed"
    draft.answer("REQUEST_TIMED_OUT", message)
    return True
