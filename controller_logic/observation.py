"""What the controller of an observed cluster did: adopt it."""

from controller_logic import shadow
from controller_logic.batch import Batch
from state.events import Observed


def observed(batch: Batch, event: Observed) -> None:
    """Adopt the results of one operation of the observed controller."""
    if not shadow.takes_in(batch, event):
        return
    batch.recorder.answer_if_requested()
