"""What an observed controller did, in one sentence that says how sure the cause is."""

from state.observed_events import Observed


def told_observation(event: Observed) -> str:
    """Return a sentence about an operation of the observed controller."""
    return f"The observed controller did this ({event.cause}, {event.certainty}) at offset {event.offset} of its log."
