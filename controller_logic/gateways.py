"""Which gateway leads the metadata quorum that brokers of Kafka 4 follow.

Kafka's voters elect their leader among themselves; gateways have one order of events between them, so
the rules name the leader: the first that starts, the same one when it starts again, and when it falls
silent, or says that it stops, the lowest of those that were heard since. Each time the quorum epoch
goes up, and the brokers behind the gateways get time to find the new leader and then a whole session:
nobody passed their heartbeats on meanwhile.
"""

from msgspec.structs import replace

from isrflow.controller_logic import sessions
from isrflow.controller_logic.draft import Draft
from isrflow.state.broker import Broker
from isrflow.state.decisions import QuorumDecision
from isrflow.state.events import GatewayHeartbeat, GatewayStarted
from isrflow.state.ids import NO_LEADER, NO_TIME
from isrflow.state.quorum import Gateway, Quorum
from isrflow.state.reason import Reason
from isrflow.state.rules import UNREPEATED_RULES

# A broker gives up on a leader that is frozen after a time-out, may ask it once more as just another voter, and
# its heartbeats follow its fetches.
FIND_LEADER_TIMEOUTS = 3

# Nobody puts a bus back from a backup that is younger.
LONG_SILENCE_MS = 60_000
# Some years; of 32 bits that leaves a clock that goes wrong nine times to do so.
EPOCHS_ON_MAX = 200_000_000


def gateway_started(draft: Draft, event: GatewayStarted) -> None:
    """Take a gateway in; it leads if nobody does, or if it did before it started again."""
    if event.gateway not in event.voters:
        message = f"gateway {event.gateway} is not among the voters {list(event.voters)}"
        draft.reject("voters", message, Reason.REQUEST_REFUSED)
        draft.answer_if_asked("INVALID_REQUEST", message)
        return
    former = draft.gateways.get(event.gateway)
    behind = _behind(draft)
    voters = tuple(sorted(set(event.voters)))
    gateway = Gateway(event.gateway, event.incarnation, voters, draft.now)
    draft.gateways[event.gateway] = gateway
    is_new = former is None or former.incarnation != event.incarnation
    if is_new and draft.quorum.voter in (NO_LEADER, event.gateway):
        _elect(draft, gateway, behind, Reason.GATEWAY_STARTED)
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
    draft.gateways[event.gateway] = replace(gateway, last_contact_ms=draft.now, is_stopping=is_stopping)
    if event.gateway == draft.quorum.voter:
        draft.quorum = replace(draft.quorum, heard_ms=draft.now)
        sessions.extend(draft, event.late_ms, behind)
        if is_stopping:
            _elect_another(draft, Reason.GATEWAY_STOPPED)
    draft.answer_if_asked(quorum_epoch=draft.quorum.quorum_epoch)


def watch_leader(draft: Draft) -> None:
    """Let another gateway lead when the one that does has been silent for too long, and another has not."""
    leader = draft.gateways.get(draft.quorum.voter)
    if leader is not None and not _is_heard(draft, leader):
        _elect_another(draft, Reason.GATEWAY_STOPPED if leader.is_stopping else Reason.GATEWAY_SILENT)


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


def _elect_another(draft: Draft, reason: Reason) -> None:
    heard = [gateway for _, gateway in sorted(draft.gateways.items()) if _is_heard(draft, gateway)]
    if heard:
        _elect(draft, heard[0], _behind(draft), reason)


def _elect(draft: Draft, gateway: Gateway, behind: list[Broker], reason: Reason) -> None:
    """Let a gateway lead; the brokers ``behind`` the one before had a session until now."""
    epoch = draft.quorum.quorum_epoch + _epochs_on(draft)
    draft.quorum = Quorum(gateway.gateway, gateway.incarnation, gateway.voters, epoch, draft.now)
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
            )
        )


def _epochs_on(draft: Draft) -> int:
    """Say by how much the epoch goes up: by one, and after a long silence by one for each second of it.

    Where bus and gateways were put back from a backup, brokers have seen epochs that this log does not know, at most
    one a second. Were one of them begun again, brokers would take other records for those that they have read.
    """
    silent_ms = draft.now - draft.quorum.heard_ms
    if draft.rules_version < UNREPEATED_RULES or draft.quorum.heard_ms == 0 or silent_ms < LONG_SILENCE_MS:
        return 1
    return min(silent_ms // 1_000, EPOCHS_ON_MAX)


def _behind(draft: Draft) -> list[Broker]:
    return [broker for broker in with_session(draft) if broker.behind_gateway]


def _is_heard(draft: Draft, gateway: Gateway) -> bool:
    silent_ms = draft.now - gateway.last_contact_ms
    return not gateway.is_stopping and silent_ms < draft.policy.controller_quorum_fetch_timeout_ms
