"""Report text that is not an event."""

from controller_logic.batch import Batch
from state.events import Malformed
from state.reason import Reason


def malformed(batch: Batch, event: Malformed) -> None:
    """Reject text that is not an event. Name the field and what was expected."""
    batch.recorder.reject(event.field, event.message, Reason.MALFORMED)
    message = f"{event.field}: {event.message}" if event.field else event.message
    batch.recorder.answer_if_requested("INVALID_REQUEST", message)
