"""A bus that is the shadow of a cluster: nothing is led on it, and only observations change its state.

A new bus becomes a shadow with the first ``observed``. From then on ticks and claims move no clock, so no session
expires and nothing is due. Each request to lead something is refused.
"""

from msgspec.structs import replace

from controller_logic.batch import Batch
from controller_logic.commit_cluster import commit_level, commit_shadow
from controller_logic.fencing import Refusal
from state.events import ENGINE_EVENTS, ControllerStarted, Malformed, Observed, Progress, RaiseLevel
from state.ids import NO_TIME
from state.level import SHADOW_LEVEL
from state.observed_events import BESIDE_THE_LOG
from state.reason import Reason
from state.shadow import Shadow

_LET_IN = (Observed, ControllerStarted, RaiseLevel, Malformed, Progress)


def is_let_in(batch: Batch) -> bool:
    """Return whether the rule for the event at hand is asked. On a shadow, refuse what leads."""
    shadow, event = batch.state.shadow, batch.logged.event
    if shadow is None or isinstance(event, _LET_IN):
        return True
    if isinstance(event, ENGINE_EVENTS):
        batch.recorder.answer_if_requested()
        return False
    refuse(batch, "kind", Refusal("INVALID_REQUEST", shadow.refusal))
    return False


def refuse(batch: Batch, field: str, refusal: Refusal) -> None:
    """Reject the event at hand, and answer it if that was asked for."""
    batch.recorder.reject(field, refusal.message, Reason.SHADOW_REFUSED)
    batch.recorder.answer_if_requested(*refusal)


def takes_in(batch: Batch, event: Observed) -> bool:
    """Return whether an observation is the next one of this shadow. Mark a new bus as a shadow; refuse any other.

    A reader that starts again after a crash begins behind the newest complete operation, so a part that was observed
    before is skipped.
    """
    shadow = batch.state.shadow
    if shadow is None and (batch.state.brokers or batch.state.gateways):
        message = "a cluster is led on this bus; a shadow begins on a new one"
        refuse(batch, "kind", Refusal("INVALID_REQUEST", message))
        return False
    complaint = _complaint_about(event, shadow)
    if complaint is not None:
        refuse(batch, *complaint)
        return False
    if _is_past(event, shadow):
        batch.recorder.answer_if_requested()
        return False
    if batch.state.level < SHADOW_LEVEL:
        commit_level(batch, SHADOW_LEVEL)
    # The first observation begins the clock, whatever a claim has set it to.
    now_ms = event.time_ms if shadow is None else max(batch.state.now_ms, event.time_ms)
    commit_shadow(batch, _after(batch, event, shadow), now_ms)
    return True


def _after(batch: Batch, event: Observed, shadow: Shadow | None) -> Shadow:
    """Return the shadow after an observation."""
    if shadow is None:
        return Shadow(event.cluster_id, event.offset, event.last_offset, event.part, event.parts)
    is_beside = event.cause in BESIDE_THE_LOG
    # Whatever comes after the first such word comes from a reader that runs.
    if is_beside or shadow.heard_ms != NO_TIME:
        entered_ms = batch.logged.entered_ms
        shadow = replace(shadow, heard_ms=NO_TIME if entered_ms is None else entered_ms)
    if is_beside:
        return shadow
    return replace(shadow, offset=event.offset, last_offset=event.last_offset, part=event.part, parts=event.parts)


def _complaint_about(event: Observed, shadow: Shadow | None) -> tuple[str, Refusal] | None:
    """Return the wrong field of an observation, and why; None if there is none."""
    if event.last_offset < event.offset:
        return "last_offset", Refusal("INVALID_REQUEST", f"expected {event.offset} or more, the offset")
    if event.part >= event.parts:
        return "part", Refusal("INVALID_REQUEST", f"expected less than {event.parts}, the parts")
    if shadow is not None and shadow.cluster_id != event.cluster_id:
        return "cluster_id", Refusal("INVALID_REQUEST", f"this bus is the shadow of cluster {shadow.cluster_id}")
    expected = _expected_part(event, shadow)
    if event.part > expected:
        return "part", Refusal("INVALID_REQUEST", f"expected {expected} of the operation at offset {event.offset}")
    if shadow is not None and not shadow.is_complete and event.offset > shadow.offset:
        message = f"expected {shadow.offset}, of which part {shadow.part + 1} of {shadow.parts} is missing"
        return "offset", Refusal("INVALID_REQUEST", message)
    return None


def _expected_part(event: Observed, shadow: Shadow | None) -> int:
    if shadow is None or event.offset != shadow.offset:
        return 0
    return shadow.part + 1


def _is_past(event: Observed, shadow: Shadow | None) -> bool:
    """Return whether a part was observed before. The first part of an incomplete operation begins it again.

    What is said beside the log counts only at the newest operation.
    """
    if event.cause in BESIDE_THE_LOG:
        return shadow is None or not shadow.is_complete or event.last_offset != shadow.last_offset
    if shadow is None:
        return False
    if event.offset != shadow.offset:
        return event.offset < shadow.offset
    return event.part <= shadow.part and (shadow.is_complete or event.part > 0)
