"""Name in each decision the admin whose request caused it."""

from controller_logic.batch import Batch
from state.event import AdminEvent


def name_in_decisions(batch: Batch) -> None:
    """Add the principal of the event at hand to all decisions on it.

    What follows later, such as the end of a reassignment, is caused by other events and has no principal.
    """
    event = batch.logged.event
    if isinstance(event, AdminEvent) and event.principal:
        batch.recorder.name_admin(event.principal)
