"""Which gateway leads the metadata quorum that brokers of Kafka 4 follow.

Kafka's voters elect their leader among themselves; gateways have one order of events between them, so
the rules name the leader: the first that starts, the same one when it starts again, and when it falls
silent, or says that it stops, the lowest of those that were heard since. Each time the quorum epoch
goes up, and the brokers behind the gateways get time to find the new leader and then a whole session:
nobody passed their heartbeats on meanwhile.
"""

from msgspec import UNSET
from msgspec.structs import replace

from controller_logic import sessions
from controller_logic.broker_settings import say_what_changed
from controller_logic.draft import Draft
from state.broker import Broker
from state.decisions import QuorumDecision
from state.events import GatewayHeartbeat, GatewayStarted
from state.ids import NO_LEADER, NO_TIME
from state.metadata_format import FIRST_FORMAT, NEWEST_FORMAT
from state.quorum import Gateway, Quorum
from state.reason import Reason
from state.rules import ANY_BACKUP_RULES, TOLD_RULES, UNREPEATED_RULES

# A broker gives up on a leader that is frozen after a time-out, may ask it once more as just another voter, and
# its heartbeats follow its fetches.
FIND_LEADER_TIMEOUTS = 3

# No gateway starts, or is stopped, more often; while a backup is put back nothing runs for longer than that.
EPOCH_MS = 500
# By rules of before, which took no backup to be put back that is younger.
LONG_SILENCE_MS = 60_000
# Three years; of 32 bits that leaves a clock that goes wrong nine times to do so.
EPOCHS_ON_MAX = 200_000_000


def gateway_started(draft: Draft, event: GatewayStarted) -> None:
    """Take a gateway in; it leads if nobody does, or if it did before it started again."""
    if event.gateway not in event.voters:
        message = f"gateway {event.gateway} is not among the voters {list(event.voters)}"
        draft.reject("voters", message, Reason.REQUEST_REFUSED)
        draft.answer_if_asked("INVALID_REQUEST", message)
        return
    if draft.rules_version >= TOLD_RULES and event.metadata_format < draft.quorum.metadata_format:
        message = f"the metadata log is of format {draft.quorum.metadata_format}, and it writes {event.metadata_format}"
        draft.reject("metadata_format", f"gateway {event.gateway} is too old: {message}", Reason.REQUEST_REFUSED)
        draft.answer_if_asked("UNSUPPORTED_VERSION", message)
        return
    former = draft.gateways.get(event.gateway)
    behind = _behind(draft)
    voters = tuple(sorted(set(event.voters)))
    writes = _format_told(draft, event.metadata_format)
    gateway = Gateway(event.gateway, event.incarnation, voters, draft.now, metadata_format=writes)
    draft.gateways[event.gateway] = gateway
    is_new = former is None or former.incarnation != event.incarnation
    if is_new and draft.quorum.voter in (NO_LEADER, event.gateway):
        _elect(draft, gateway, behind, Reason.GATEWAY_STARTED)
    else:
        _go_on_in_newer_format(draft)
    draft.answer_if_asked(quorum_epoch=draft.quorum.quorum_epoch)


def gateway_heartbeat(draft: Draft, event: GatewayHeartbeat) -> None:
    """Note that a gateway lives; what it did not hear while it was held up was not silence.

    When the one that leads ends in order another one leads at once (Kafka's leader resigns then). Where there is no
    other it stays the leader that it was, until another one starts or it does so again.
    """
    gateway = draft.gateways.get(event.gateway)
    if gateway is None or gateway.incarnation != event.incarnation:
        message = f"gateway {event.gateway} has not started as {event.incarnation}, or did so again since"
        draft.reject("incarnation", message, Reason.REQUEST_REFUSED)
        draft.answer_if_asked("STALE_BROKER_EPOCH", message)
        return
    behind = _behind(draft) if event.late_ms else []
    is_stopping = gateway.is_stopping or event.want_shutdown
    gateway = replace(gateway, last_contact_ms=draft.now, is_stopping=is_stopping)
    if event.metadata_format is not UNSET:
        gateway = replace(gateway, metadata_format=_format_told(draft, event.metadata_format))
    draft.gateways[event.gateway] = gateway
    if event.gateway == draft.quorum.voter:
        draft.quorum = replace(draft.quorum, heard_ms=draft.now)
        sessions.extend(draft, event.late_ms, behind)
        if is_stopping:
            _elect_another(draft, Reason.GATEWAY_STOPPED)
    if event.metadata_format is not UNSET:
        _go_on_in_newer_format(draft)
    draft.answer_if_asked(quorum_epoch=draft.quorum.quorum_epoch)


def watch_leader(draft: Draft) -> None:
    """Let another gateway lead when the one that does has been silent for too long, and another has not."""
    leader = draft.gateways.get(draft.quorum.voter)
    if leader is not None and not _is_heard(draft, leader):
        _elect_another(draft, Reason.GATEWAY_STOPPED if leader.is_stopping else Reason.GATEWAY_SILENT)


def is_led(draft: Draft) -> bool:
    """Say whether a gateway leads the quorum that was heard in time, and does not stop."""
    leader = draft.gateways.get(draft.quorum.voter)
    return leader is not None and _is_heard(draft, leader)


def heard_until(draft: Draft, broker: Broker) -> int:
    """Give the time up to which a broker could be heard, in ms: behind a gateway while that one was."""
    leader = draft.gateways.get(draft.quorum.voter) if broker.behind_gateway else None
    return draft.now if leader is None else leader.last_contact_ms


def has_session(draft: Draft, broker: Broker) -> bool:
    """Say whether a broker, fenced or not, was heard within its session."""
    if broker.last_contact_ms == NO_TIME:
        return False
    return heard_until(draft, broker) - broker.last_contact_ms < draft.policy.broker_session_timeout_ms


def with_session(draft: Draft) -> list[Broker]:
    """List the brokers whose silence counts: they are live, or fenced and were heard within their session."""
    return [broker for broker in draft.brokers.values() if broker.is_live or has_session(draft, broker)]


def begin_anew(draft: Draft) -> None:
    """Hold no silence of a time without a controller against the gateways."""
    for number, gateway in draft.gateways.items():
        draft.gateways[number] = replace(gateway, last_contact_ms=draft.now)


def lead_on(draft: Draft) -> None:
    """After a time without a controller let the leader lead on in another epoch.

    What is decided from here on is not what brokers may have read in the last one, were all of this put back from a
    backup. Brokers hear of the claim's settings in either case.
    """
    leader = draft.gateways.get(draft.quorum.voter)
    unheard_ms = draft.now - draft.quorum.heard_ms
    if (
        draft.rules_version >= ANY_BACKUP_RULES
        and leader is not None
        and unheard_ms >= draft.policy.controller_quorum_fetch_timeout_ms
    ):
        _elect(draft, leader, _behind(draft), Reason.CONTROLLER_STARTED)
    say_what_changed(draft)


def _elect_another(draft: Draft, reason: Reason) -> None:
    heard = [gateway for _, gateway in sorted(draft.gateways.items()) if _is_heard(draft, gateway)]
    if heard:
        _elect(draft, heard[0], _behind(draft), reason)


def _format_told(draft: Draft, told: int) -> int:
    return FIRST_FORMAT if draft.rules_version < TOLD_RULES else min(told, NEWEST_FORMAT)


def _format(draft: Draft) -> int:
    """Name the newest format of the metadata log that all gateways which may be writing one can write.

    One that stops is among them until it is silent.
    """
    if draft.rules_version < TOLD_RULES:
        return FIRST_FORMAT
    writing = [gateway.metadata_format for gateway in draft.gateways.values() if not _is_silent(draft, gateway)]
    return max(draft.quorum.metadata_format, min(writing, default=FIRST_FORMAT))


def _go_on_in_newer_format(draft: Draft) -> None:
    """Let the leader lead on in a newer format, as soon as every gateway can write it.

    Those that cannot and were not heard would write another log than all others, so they count no more.
    """
    leader = draft.gateways.get(draft.quorum.voter)
    if leader is not None and _is_heard(draft, leader) and _format(draft) > draft.quorum.metadata_format:
        _elect(draft, leader, _behind(draft), Reason.GATEWAY_STARTED)


def _elect(draft: Draft, gateway: Gateway, behind: list[Broker], reason: Reason) -> None:
    """Let a gateway lead; the brokers ``behind`` the one before had a session until now."""
    epoch, metadata_format = draft.quorum.quorum_epoch + _epochs_on(draft), _format(draft)
    who = (gateway.gateway, gateway.incarnation, gateway.voters)
    draft.quorum = Quorum(*who, epoch, _at_least_ms(draft), metadata_format, no_op_ms=draft.now)
    draft.gateways = {n: held for n, held in draft.gateways.items() if held.metadata_format >= metadata_format}
    say_what_changed(draft)
    find_ms = FIND_LEADER_TIMEOUTS * draft.policy.controller_quorum_fetch_timeout_ms
    sessions.begin_anew(draft, behind, in_ms=find_ms)
    if draft.writes:
        draft.decisions.append(
            QuorumDecision(
                **draft.said(reason),
                voter=gateway.gateway,
                incarnation=gateway.incarnation,
                voters=gateway.voters,
                quorum_epoch=epoch,
                metadata_format=UNSET if metadata_format == FIRST_FORMAT else metadata_format,
            )
        )


def _epochs_on(draft: Draft) -> int:
    """Say by how much the epoch goes up: by one, and after a silence by one for each half second of it.

    Where bus and gateways were put back from a backup, brokers have seen epochs that this log does not know, at most
    one in half a second. Were one of them begun again, brokers would take other records for those that they have read.
    """
    if draft.rules_version < UNREPEATED_RULES or draft.quorum.heard_ms == 0:
        return 1
    if draft.rules_version < ANY_BACKUP_RULES:
        silent_ms = draft.now - draft.quorum.heard_ms
        return 1 if silent_ms < LONG_SILENCE_MS else min(silent_ms // 1_000, EPOCHS_ON_MAX)
    return max(1, min((_at_least_ms(draft) - draft.quorum.heard_ms) // EPOCH_MS, EPOCHS_ON_MAX))


def _at_least_ms(draft: Draft) -> int:
    """Say what time it is, as far as is known: the clock stands still until a claim, and that has found this event."""
    if draft.rules_version < ANY_BACKUP_RULES or draft.found_ms is None:
        return draft.now
    return max(draft.now, draft.found_ms)


def _behind(draft: Draft) -> list[Broker]:
    return [broker for broker in with_session(draft) if broker.behind_gateway]


def _is_heard(draft: Draft, gateway: Gateway) -> bool:
    return not gateway.is_stopping and not _is_silent(draft, gateway)


def _is_silent(draft: Draft, gateway: Gateway) -> bool:
    return draft.now - gateway.last_contact_ms >= draft.policy.controller_quorum_fetch_timeout_ms
