"""Which events count by their time, and how the engine's clock goes on (version 2 of the rules).

The clock moves with what the engine itself put on the bus, and with nothing else: a claim begins it, ticks and
extensions move it on. What an author writes into ``time_ms`` is kept, and judged against the time at which the bus got
the event: one that is too far ahead is refused, because its author's clock is wrong.

Under version 1 the clock was the greatest ``time_ms`` of any event, so that one wrong clock could fence
every broker, or end for good that anybody is fenced.
"""

from msgspec.structs import replace

from controller_logic.draft import Draft
from state.engine_events import ENGINE_EVENTS
from state.events import ControllerStarted, Event, LeaderImbalance, SessionsExtended, Tick
from state.ids import NO_TIME
from state.reason import Reason

# How far a claim may lie behind the clock for it to go on, and how much more time than passed on the bus a tick may
# tell of. No setting, because an engine must be able to rely on it.
LEAP_MS_MAX = 60_000


def is_admitted(draft: Draft) -> bool:
    """Say whether the event at hand counts, and move the clock on where it does; one that does not is answered."""
    event = draft.event
    if not isinstance(event, Event) or isinstance(event, ControllerStarted):
        return True
    if isinstance(event, ENGINE_EVENTS):
        return _is_of_the_engine(draft, event) and (isinstance(event, LeaderImbalance) or _moves_on(draft, event))
    if draft.entered_ms is None:
        return True
    ahead_ms = event.time_ms - draft.entered_ms
    if ahead_ms <= draft.policy.event_time_ahead_max_ms:
        return True
    _refuse(draft, "time_ms", f"it is {ahead_ms} ms ahead of the time at which it came", Reason.TIME_AHEAD)
    return False


def _is_of_the_engine(draft: Draft, event: LeaderImbalance | SessionsExtended | Tick) -> bool:
    """Say whether the job that decides made an event; what the one before it still sent is passed over."""
    if event.controller_epoch == draft.controller_epoch:
        return True
    if event.controller_epoch is not None and event.controller_epoch < draft.controller_epoch:
        draft.answer_if_asked("STALE_CONTROLLER_EPOCH", f"controller epoch {draft.controller_epoch} has begun")
        return False
    message = f"only the engine makes this, in controller epoch {draft.controller_epoch}"
    _refuse(draft, "controller_epoch", message, Reason.UNKNOWN_CLAIM)
    return False


def _moves_on(draft: Draft, event: SessionsExtended | Tick) -> bool:
    """Move the clock on to a tick, unless that tells of more time than has passed on the bus."""
    if draft.entered_ms is not None and draft.clock_entered_ms != NO_TIME:
        passed_ms = max(0, draft.entered_ms - draft.clock_entered_ms)
        leap_ms = event.time_ms - draft.now - passed_ms
        if leap_ms > LEAP_MS_MAX:
            message = f"it is {leap_ms} ms more than the time that passed since the tick before it"
            _refuse(draft, "time_ms", message, Reason.TIME_AHEAD)
            return False
    draft.now = max(draft.now, event.time_ms)
    _note_entry(draft)
    return True


def begin(draft: Draft, event: ControllerStarted) -> None:
    """Begin a claim's time: that goes on from the clock, or where the clock is far ahead starts from the claim's.

    Then whatever was measured by the clock of before begins anew.
    """
    if draft.now - event.time_ms > LEAP_MS_MAX:
        draft.now = event.time_ms
        for broker in list(draft.brokers.values()):
            # One that has never been heard has no session either.
            last_contact_ms = NO_TIME if broker.last_contact_ms == NO_TIME else draft.now
            draft.put_broker(replace(broker, last_contact_ms=last_contact_ms, connection_lost_ms=NO_TIME))
        draft.quorum = replace(draft.quorum, heard_ms=min(draft.now, draft.quorum.heard_ms))
    draft.now = max(draft.now, event.time_ms)
    _note_entry(draft)


def _note_entry(draft: Draft) -> None:
    draft.clock_entered_ms = NO_TIME if draft.entered_ms is None else draft.entered_ms


def _refuse(draft: Draft, field: str, message: str, reason: Reason) -> None:
    draft.reject(field, message, reason)
    draft.answer_if_asked("INVALID_REQUEST", message)
