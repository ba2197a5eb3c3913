"""The engine's clock: which events count by their time, and how it moves.

From an engine's claim on, only the engine's own events move the clock: the claim begins it, ticks and extensions move
it on. The ``time_ms`` of any other event is compared with the time at which the bus got the event. If it is too far
ahead, its author's clock is wrong and the event is refused. Otherwise one wrong clock could fence every broker, or keep
any broker from ever being fenced again.

An engine names its settings in its claim, and its bus knows the claim. In a log without a claim, or with one that
people wrote by hand, every event moves the clock. The clock of a shadow is that of the observed cluster: only
``observed`` moves it.
"""

from msgspec.structs import replace

from controller_logic import sessions
from controller_logic.batch import Batch
from controller_logic.commit_cluster import commit_broker, commit_clock, commit_quorum, commit_recovery_due
from state.events import ENGINE_EVENTS, ControllerStarted, Event, LeaderImbalance, Observed, SessionsExtended, Tick
from state.ids import NO_TIME
from state.reason import Reason

# A claim continues the clock only if the clock is at most this far ahead of it. A tick may advance the clock by at most
# this much more than the time that passed on the bus. This is not a setting, because engines rely on it.
LEAP_MS_MAX = 60_000
# Few events are of these types, and a set finds that out sooner than ``isinstance``.
_ENGINE_TYPES = frozenset(ENGINE_EVENTS)


def is_admitted(batch: Batch) -> bool:
    """Return whether the event at hand counts, and move the clock if it does. Answer an event that does not."""
    event = batch.logged.event
    if not isinstance(event, Event) or isinstance(event, ControllerStarted | Observed):
        return True
    if not batch.state.has_engine_clock:
        return True
    if type(event) in _ENGINE_TYPES and isinstance(event, ENGINE_EVENTS):
        if not _is_of_the_engine(batch, event):
            return False
        if isinstance(event, LeaderImbalance) or batch.state.shadow is not None:
            return True
        return _advances_clock(batch, event)
    if batch.logged.entered_ms is None:
        return True
    ahead_ms = event.time_ms - batch.logged.entered_ms
    if ahead_ms <= batch.state.policy.event_time_ahead_max_ms:
        return True
    _refuse(batch, "time_ms", f"it is {ahead_ms} ms ahead of the time at which it came", Reason.TIME_AHEAD)
    return False


def _is_of_the_engine(batch: Batch, event: LeaderImbalance | SessionsExtended | Tick) -> bool:
    """Return whether the current job made an event. Events that a former job still sent are skipped."""
    current = batch.state.controller_epoch
    # A tick that was written by hand need not name an epoch.
    is_unnamed = event.controller_epoch is None and batch.logged.is_by_hand
    if is_unnamed or event.controller_epoch == current:
        return True
    if event.controller_epoch is not None and event.controller_epoch < current:
        batch.recorder.answer_if_requested("STALE_CONTROLLER_EPOCH", f"controller epoch {current} has begun")
        return False
    message = f"only the engine makes this, in controller epoch {current}"
    _refuse(batch, "controller_epoch", message, Reason.UNKNOWN_CLAIM)
    return False


def _advances_clock(batch: Batch, event: SessionsExtended | Tick) -> bool:
    """Move the clock to a tick, unless the tick is too far ahead of the time that passed on the bus."""
    if batch.logged.entered_ms is not None and batch.state.clock_entered_ms != NO_TIME:
        passed_ms = max(0, batch.logged.entered_ms - batch.state.clock_entered_ms)
        leap_ms = event.time_ms - batch.state.now_ms - passed_ms
        if leap_ms > LEAP_MS_MAX:
            message = f"it is {leap_ms} ms more than the time that passed since the tick before it"
            _refuse(batch, "time_ms", message, Reason.TIME_AHEAD)
            return False
    _set_clock(batch, max(batch.state.now_ms, event.time_ms))
    return True


def begin(batch: Batch, event: ControllerStarted) -> None:
    """Set the clock for a new claim: continue it, or set it back to the claim's time if it is far ahead of that.

    If it is set back, all times that were noted by the former clock become the claim's time.
    """
    if not batch.state.has_engine_clock or batch.state.now_ms - event.time_ms <= LEAP_MS_MAX:
        _set_clock(batch, max(batch.state.now_ms, event.time_ms))
        return
    _set_clock(batch, event.time_ms)
    latest_ms = event.time_ms + batch.state.policy.unclean_recovery_timeout_ms
    for (topic, partition), due_ms in list(batch.state.recoveries_due.items()):
        commit_recovery_due(batch, topic, partition, min(due_ms, latest_ms))
    for broker in list(batch.state.brokers.values()):
        # A broker that was never heard has no session yet.
        last_contact_ms = NO_TIME if broker.last_contact_ms == NO_TIME else event.time_ms
        times = {"last_contact_ms": last_contact_ms, "connection_lost_ms": NO_TIME, "heard_ms": last_contact_ms}
        commit_broker(batch, replace(broker, **times))
    quorum, now_ms = batch.state.quorum, event.time_ms
    heard_ms, began_ms = min(now_ms, quorum.heard_ms), min(now_ms, quorum.began_ms)
    commit_quorum(batch, replace(quorum, heard_ms=heard_ms, began_ms=began_ms, outdone_ms=NO_TIME))


def _set_clock(batch: Batch, now_ms: int) -> None:
    entered_ms = batch.logged.entered_ms
    commit_clock(batch, now_ms, NO_TIME if entered_ms is None else entered_ms)
    sessions.settle(batch)


def _refuse(batch: Batch, field: str, message: str, reason: Reason) -> None:
    batch.recorder.reject(field, message, reason)
    batch.recorder.answer_if_requested("INVALID_REQUEST", f"{field}: {message}")
