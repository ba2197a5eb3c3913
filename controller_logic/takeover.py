"""Begin a controller epoch (``KafkaController.onControllerFailover``)."""

import msgspec

from controller_logic import (
    balance,
    clock,
    deletion,
    eligible_leaders,
    gateways,
    removal,
    sessions,
    unclean_recovery,
)
from controller_logic.batch import Batch
from controller_logic.commit import recheck_reassignment
from controller_logic.commit_cluster import commit_claim, commit_settings
from controller_logic.config import change_settings, text_of
from state.decisions import StopReplica
from state.events import ControllerStarted
from state.features import ELIGIBLE_LEVEL, ELIGIBLE_VERSION
from state.policy import NAMES, RECOVERY_STRATEGY, RECOVERY_TIMEOUT, Policy, complaint_about
from state.policy_fit import TICK_INTERVAL
from state.reason import Reason

# An interval with more digits is longer than any session.
TICK_DIGITS = 16
_SINCE_LEVEL_2 = (ELIGIBLE_VERSION, RECOVERY_STRATEGY, RECOVERY_TIMEOUT)
_DEFAULTS = {key: str(value) for key, value in msgspec.to_builtins(Policy()).items()}


def _resume(batch: Batch) -> None:
    """Recheck reassignments, and ask again for the deletions that brokers have yet to report.

    The classic controller sends every replica everything again, because requests may be lost with their sender.
    Decisions are not lost: brokers read them in order from where they stopped. Only the report on a decision may be
    lost, so only decisions with an outstanding report are repeated.
    """
    repeated = {(d.topic, d.partition) for d in batch.recorder.said_now() if isinstance(d, StopReplica)}
    for topic in batch.state.topics():
        if topic.is_deleting:
            deletion.resume(batch, topic)
            continue
        for partition in topic.partitions.moving():
            if (topic.topic, partition.partition) in repeated:
                continue
            after = recheck_reassignment(batch, topic, partition)
            if after.removed == partition.removed != ():
                removal.resume(batch, topic, after)


def _given(event: ControllerStarted) -> dict[str, str]:
    """Return the claim's settings that rules read."""
    given = {key: value for key, value in text_of(event.settings or {}).items() if value is not None}
    tick = given.get(TICK_INTERVAL, "")
    has_tick = tick.isascii() and tick.isdecimal() and len(tick) <= TICK_DIGITS
    for key in _SINCE_LEVEL_2:
        if given.get(key) == _DEFAULTS[key]:
            # A former release does not know it.
            del given[key]
    return {key: value for key, value in given.items() if key in NAMES or (key == TICK_INTERVAL and has_tick)}


def controller_started(batch: Batch, event: ControllerStarted) -> None:
    """Take the next controller epoch and its settings, and continue what is under way.

    If the bus knows which events are claims, any other is refused. A claim that the bus knows counts even if its epoch
    is lower than the current one, because then the current one was forged. Live brokers get a whole session from now
    on, because there was no controller to hear them; a broker that stays silent gets it once. Impossible settings are
    reported together and ignored, but the epoch counts all the same. On a shadow only the settings are taken up.
    """
    if batch.logged.is_claim is False:
        message = f"no job claimed controller epoch {event.controller_epoch} with this event"
        batch.recorder.reject("controller_epoch", message, Reason.UNKNOWN_CLAIM)
        batch.recorder.answer_if_requested("INVALID_REQUEST", message)
        return
    if event.controller_epoch <= batch.state.controller_epoch and not batch.logged.is_claim:
        message = f"controller epoch {event.controller_epoch} is not newer than {batch.state.controller_epoch}"
        batch.recorder.reject("controller_epoch", message, Reason.REQUEST_REFUSED)
        batch.recorder.answer_if_requested("STALE_CONTROLLER_EPOCH", message)
        return
    is_by_engine = event.settings is not None or batch.logged.is_claim is True
    commit_claim(batch, str(event.controller_id), event.controller_epoch, event.level, has_engine_clock=is_by_engine)
    if batch.state.shadow is None:
        _begin_clock(batch, event)
    given = _given(event)
    complaints = {key: complaint for key, value in given.items() if (complaint := complaint_about(key, value))}
    for key, check in (
        (ELIGIBLE_VERSION, eligible_leaders.complaint_about),
        (RECOVERY_STRATEGY, unclean_recovery.complaint_about),
    ):
        if key not in complaints and (complaint := check(batch, given)) is not None:
            complaints[key] = complaint
    is_known = batch.state.level >= ELIGIBLE_LEVEL
    settings = {key: value for key, value in given.items() if key not in complaints}
    settings = {key: value for key, value in settings.items() if is_known or key != RECOVERY_TIMEOUT}
    if complaints:
        fields = ", ".join(f"settings.{key}" for key in complaints)
        batch.recorder.reject(fields, "; ".join(complaints.values()), Reason.MALFORMED)
    if batch.state.shadow is None:
        change_settings(batch, settings, batch.state.config)
        gateways.lead_on(batch)
        balance.schedule_first_check(batch)
        _resume(batch)
    else:
        commit_settings(batch, settings, batch.state.config)
    batch.recorder.answer_if_requested()


def _begin_clock(batch: Batch, event: ControllerStarted) -> None:
    before_ms = batch.state.now_ms
    clock.begin(batch, event)
    unheard_ms = max(0, batch.state.now_ms - before_ms)
    sessions.grant_whole_session(batch, gateways.with_session(batch), unheard_ms=unheard_ms)
    gateways.forgive_silence(batch)
