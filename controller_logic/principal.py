"""Name in each decision the admin whose request caused it."""

from msgspec.structs import replace

from controller_logic.batch import Batch
from state.alike import decisions_of
from state.event import AdminEvent
from state.rules import NAMED_RULES


def name_in_decisions(batch: Batch, said_before: int) -> None:
    """Add the principal of the event at hand to all decisions on it: those after the first ``said_before``.

    What follows later, such as the end of a reassignment, is caused by other events and has no principal.
    """
    event = batch.logged.event
    if not isinstance(event, AdminEvent) or not event.principal or batch.state.rules_version < NAMED_RULES:
        return
    # Rows share a pattern, also with later events. So they are written out.
    said = batch.recorder.said
    said[said_before:] = [replace(one, principal=event.principal) for one in decisions_of(said[said_before:])]
