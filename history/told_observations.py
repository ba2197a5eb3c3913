"""What an observed controller did, in one sentence that says how sure its cause is.

What happened is in the observed log, so it is told as a fact. Why it happened may be a guess: a likely cause is told
with "probably", and an open one as "either ... or ...".
"""

from collections.abc import Iterable

from msgspec import UNSET

from state.observed_events import Cause, Certainty, Evidence, Observed

_FENCED = "Broker {} was fenced"
# By cause: what happened, and why; no reason if the fact says it all. ``{}`` is the broker.
_WORDS: dict[Cause, tuple[str, str]] = {
    Cause.seed: ("The observation began", ""),
    Cause.gap: ("Records of the observed log were missed, and this differs after them,", ""),
    Cause.session_expired: (_FENCED, "its session expired"),
    Cause.session_or_shutdown: (_FENCED, "its session expired or it stopped at once when it was asked to"),
    Cause.shutdown_complete: (_FENCED, "its controlled shutdown was complete"),
    Cause.stopped_session_ended: (_FENCED, "the session of its process, which had stopped before, ended"),
    Cause.controlled_shutdown: ("Broker {} hands over what it leads", "it was asked to shut down"),
    Cause.broker_registered: ("Broker {} registered", ""),
    Cause.unclean_restart: ("Broker {} registered", "it started again after a stop that was not clean"),
    Cause.broker_ready: ("Broker {} was unfenced", "it is ready to serve"),
    Cause.broker_unregistered: ("Broker {} was unregistered", "an admin asked for it"),
    Cause.directory_failed: ("Broker {} lost replicas", "one of its log directories failed"),
    Cause.directories_cordoned: ("Broker {} said which of its log directories are to get no new replicas", ""),
    Cause.replica_placed: ("Broker {} said in which of its log directories replicas are", ""),
    Cause.isr_shrunk: ("A leader removed followers from the ISR", "they fell behind"),
    Cause.isr_expanded: ("A leader added followers to the ISR", "they caught up"),
    Cause.preferred_election: (
        "The preferred replica leads again",
        "an admin asked for it, or the controller balanced leaders",
    ),
    Cause.unclean_election: (
        "A replica that may lack records leads",
        "an admin asked for it, a setting allows it, or it was the last leader",
    ),
    Cause.leader_recovered: ("A leader recovered after an unclean election", ""),
    Cause.reassignment_began: ("A move to other brokers began", "an admin asked for it"),
    Cause.reassignment_ended: ("A move ended", "all of its replicas are in sync"),
    Cause.reassignment_cancelled: ("A move was cancelled", "an admin asked for it"),
    Cause.reassignment_done_at_once: ("A move was done at once", "it needed no new replica"),
    Cause.topic_created: ("A topic was created", ""),
    Cause.partitions_added: ("Partitions were added", "an admin asked for it"),
    Cause.topic_deleted: ("A topic was deleted", ""),
    Cause.settings_changed: ("Dynamic settings changed", ""),
    Cause.elr_cleared: ("Eligible leader replicas were cleared", "min.insync.replicas changed"),
    Cause.feature_changed: ("The level of a feature changed", ""),
    Cause.access_changed: ("ACLs, credentials or tokens changed", ""),
    Cause.quotas_changed: ("Client quotas changed", ""),
    Cause.controller_changed: ("Another controller is active", ""),
    Cause.other: ("The observed controller changed something", ""),
    Cause.no_change: ("Nothing has changed since the operation", ""),
    Cause.static_settings: ("The active controller told settings of its file after the operation", ""),
}


def told_observation(event: Observed) -> str:
    """Return a sentence about an operation of the observed controller, with its offset in the observed log."""
    evidence = Evidence() if event.evidence is UNSET else event.evidence
    broker = "A broker" if evidence.broker is UNSET else f"Broker {evidence.broker}"
    what, because = _WORDS[event.cause][0].replace("Broker {}", broker), _because(event, evidence.alternatives)
    part = "" if event.parts == 1 else f", part {event.part + 1} of {event.parts}"
    silent = "" if evidence.silent_ms is UNSET else f" (it had not fetched for {evidence.silent_ms / 1000:.1f} s)"
    log = "" if evidence.log_line is UNSET else f' The controller\'s log says: "{evidence.log_line}".'
    return f"{what} at offset {event.offset}{part}{f': {because}' if because else ''}{silent}.{log}"


def _because(event: Observed, alternatives: Iterable[Cause]) -> str:
    """Return the cause in words, as sure as it is; empty if the fact says it all."""
    why = _WORDS[event.cause][1]
    others = [words for cause in alternatives if cause is not event.cause and (words := _WORDS[cause][1])]
    if event.certainty is Certainty.certain or not why:
        return why
    if event.certainty is Certainty.likely:
        return f"probably {why}" + (f", else {' or '.join(others)}" if others else "")
    if event.cause is Cause.session_or_shutdown:
        # It names two causes itself.
        return f"either {' or '.join(others)}" if others else f"either {why}"
    return f"either {' or '.join([why, *others])}" if others else f"perhaps {why}"
