"""Begin a controller epoch (``KafkaController.onControllerFailover``)."""

from controller_logic import balance, clock, deletion, gateways, removal, sessions
from controller_logic.config import change_settings, text_of
from controller_logic.draft import Draft
from state.change import PartitionChange
from state.decisions import StopReplica
from state.events import ControllerStarted
from state.policy import NAMES, complaint_about
from state.reason import Reason
from state.rules import ENGINE_CLOCK_RULES, NEWEST_RULES


def _resume(draft: Draft) -> None:
    """Look again at reassignments, and ask again for the deletions that brokers have yet to report.

    The classic controller tells every replica everything anew, for requests may be lost with their
    sender. Decisions are not: brokers read them in order from where they stopped. What may be lost is
    that a broker carried one out, so those alone are said again whose report is awaited.
    """
    told = {(d.topic, d.partition) for d in draft.decisions if isinstance(d, StopReplica) and d.seq == draft.seq}
    for topic in draft.topics():
        if topic.is_deleting:
            deletion.resume(draft, topic)
            continue
        for partition in topic.partitions:
            if (topic.topic, partition.partition) in told:
                continue
            after = partition
            if partition.is_reassigning:
                after = draft.change(topic, partition, PartitionChange(), Reason.REASSIGNMENT)
            if after.removed == partition.removed != ():
                removal.resume(draft, topic, after)


def _begin_clock(draft: Draft, event: ControllerStarted) -> None:
    if event.rules_version < ENGINE_CLOCK_RULES:
        draft.now = max(draft.now, event.time_ms)
    else:
        clock.begin(draft, event)


def controller_started(draft: Draft, event: ControllerStarted) -> None:
    """Take the next controller epoch, and the settings that it decides by; go on with what is under way.

    Which claims there are the bus knows, where it says so: one that it does not know is refused, and one that it
    knows counts though its epoch is lower, because a greater one was forged. Live brokers get a whole session from
    now on: nobody listened while no controller was there. Settings that cannot be are reported, all in one, and left
    aside, and the epoch counts all the same. A claim by rules that this code does not have is refused: a later
    isrflow made it.
    """
    if draft.is_claim is False:
        message = f"no job claimed controller epoch {event.controller_epoch} with this event"
        draft.reject("controller_epoch", message, Reason.UNKNOWN_CLAIM)
        draft.answer_if_asked("INVALID_REQUEST", message)
        return
    if event.controller_epoch <= draft.controller_epoch and not draft.is_claim:
        message = f"controller epoch {event.controller_epoch} is not newer than {draft.controller_epoch}"
        draft.reject("controller_epoch", message, Reason.REQUEST_REFUSED)
        draft.answer_if_asked("STALE_CONTROLLER_EPOCH", message)
        return
    if event.rules_version > NEWEST_RULES:
        message = f"rules version {event.rules_version} is not known here: this isrflow has those up to {NEWEST_RULES}"
        draft.reject("rules_version", message, Reason.REQUEST_REFUSED)
        draft.answer_if_asked("UNSUPPORTED_VERSION", message)
        return
    draft.controller_epoch = event.controller_epoch
    draft.begin_rules(event.rules_version)
    _begin_clock(draft, event)
    draft.controller_id = str(event.controller_id)
    sessions.begin_anew(draft, gateways.with_session(draft))
    gateways.begin_anew(draft)
    given = {key: value for key, value in text_of(event.settings or {}).items() if value is not None and key in NAMES}
    complaints = {
        key: complaint for key, value in given.items() if (complaint := complaint_about(key, value, plainly=False))
    }
    settings = {key: value for key, value in given.items() if key not in complaints}
    if complaints:
        fields = ", ".join(f"settings.{key}" for key in complaints)
        draft.reject(fields, "; ".join(complaints.values()), Reason.MALFORMED)

    def set_settings() -> None:
        draft.settings = settings

    change_settings(draft, set_settings)
    gateways.lead_on(draft)
    balance.begin_anew(draft)
    _resume(draft)
    draft.answer_if_asked()
