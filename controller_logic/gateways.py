"""Which gateway leads the metadata quorum that brokers of Kafka 4 follow.

Kafka's voters elect their leader among themselves. Gateways share one order of events, so the rules name the leader:

* the first gateway that starts, and the same one when it starts again;
* another of those that were heard recently, when the leader falls silent, says that it stops, or brokers do not reach
  it (``hearing``): the one that hears most brokers, and the lowest of equals.

Each time the quorum epoch rises. The brokers behind the gateways then get time to find the new leader and a whole
session after that, because no gateway passed on their heartbeats meanwhile. A broker that no gateway hears, while other
brokers reach the next leader, gets this time once per silence, however often leaders change.
"""

from msgspec import UNSET
from msgspec.structs import replace

from controller_logic import fencing, hearing, sessions
from controller_logic.availability import elect_all_leaderless
from controller_logic.batch import Batch
from controller_logic.broker_settings import tell_changed_settings
from controller_logic.commit_cluster import commit_gateway, commit_quorum, commit_quorum_epoch
from state.broker import Broker
from state.events import GatewayHeartbeat, GatewayStarted
from state.ids import NO_LEADER, NO_TIME
from state.metadata_quorum import Gateway, Quorum
from state.reason import Reason

# Quorum epochs begin at most once in this time, because gateways do not start or stop more often.
EPOCH_MS = 500
# Three years. Epochs have 32 bits, so a wrong clock can raise the epoch by this much nine times.
EPOCHS_ON_MAX = 200_000_000


def gateway_started(batch: Batch, event: GatewayStarted) -> None:
    """Register a gateway. It leads if no gateway does, or if it led before it started again.

    From the first one on, partitions that would wait for logs do not (``WorkingTopic.recovery``).
    """
    if event.gateway not in event.voters:
        message = f"gateway {event.gateway} is not among the voters {list(event.voters)}"
        batch.recorder.reject("voters", message, Reason.REQUEST_REFUSED)
        batch.recorder.answer_if_requested("INVALID_REQUEST", message)
        return
    if fencing.is_below_the_level(batch, event.level):
        return
    if batch.state.has_eligible_leaders and not event.is_kraft:
        message = "eligible.leader.replicas.version is 1, and brokers in ZooKeeper mode do not know eligible replicas"
        batch.recorder.reject("is_kraft", message, Reason.REQUEST_REFUSED)
        batch.recorder.answer_if_requested("UNSUPPORTED_VERSION", message)
        return
    former = batch.state.gateways.get(event.gateway)
    behind = _unheard(batch)
    voters = tuple(sorted(set(event.voters)))
    gateway = Gateway(event.gateway, event.incarnation, voters, NO_TIME, is_kraft=event.is_kraft, level=event.level)
    gateway = _heard(batch, gateway)
    had_log_reports = batch.state.has_log_reports
    commit_gateway(batch, gateway)
    if had_log_reports and batch.state.has_eligible_leaders:
        elect_all_leaderless(batch)
    is_new = former is None or former.incarnation != event.incarnation
    if is_new and batch.state.quorum.voter in (NO_LEADER, event.gateway):
        _elect(batch, gateway, behind, Reason.GATEWAY_STARTED)
    batch.recorder.answer_if_requested(quorum_epoch=batch.state.quorum.quorum_epoch)


def gateway_heartbeat(batch: Batch, event: GatewayHeartbeat) -> None:
    """Note that a gateway lives. Time in which the leader was held up and heard no broker does not count as silence.

    When the leader stops cleanly, another gateway leads at once, as Kafka's leader resigns. If there is no other, it
    stays the leader until a gateway starts.
    """
    if fencing.is_below_the_level(batch, event.level):
        return
    gateway = batch.state.gateways.get(event.gateway)
    if gateway is None or gateway.incarnation != event.incarnation:
        message = f"gateway {event.gateway} has not started as {event.incarnation}, or did so again since"
        batch.recorder.reject("incarnation", message, Reason.REQUEST_REFUSED)
        batch.recorder.answer_if_requested("STALE_BROKER_EPOCH", message)
        return
    behind = _behind(batch) if event.late_ms else []
    is_stopping = gateway.is_stopping or event.want_shutdown
    gateway = replace(_heard(batch, gateway), is_stopping=is_stopping)
    if event.hears is not UNSET:
        gateway = replace(gateway, hears=tuple(sorted(set(event.hears))))
    commit_gateway(batch, gateway)
    if event.gateway == batch.state.quorum.voter:
        quorum = batch.state.quorum
        now_ms = batch.state.now_ms
        # At first it also names brokers that reached it while another gateway led.
        is_new = now_ms - quorum.began_ms < batch.state.policy.controller_quorum_fetch_timeout_ms
        was_reached = quorum.was_reached or (not is_new and bool(hearing.heard(gateway, batch.state.brokers)))
        commit_quorum(batch, replace(quorum, heard_ms=now_ms, was_reached=was_reached))
        sessions.extend(batch, event.late_ms, behind)
        if is_stopping:
            _elect_another(batch, Reason.GATEWAY_STOPPED)
    batch.recorder.answer_if_requested(quorum_epoch=batch.state.quorum.quorum_epoch)


def _heard(batch: Batch, gateway: Gateway) -> Gateway:
    times = {"last_contact_ms": sessions.time_of_event(batch), "heard_ms": batch.state.now_ms}
    return replace(gateway, **times, heard_since_tick=True)


def watch_leader(batch: Batch) -> None:
    """If the leader has been silent for too long, is stopping or not reached, make a live gateway the leader."""
    leader = batch.state.gateways.get(batch.state.quorum.voter)
    if leader is None:
        return
    if not is_live(batch, leader):
        _elect_another(batch, Reason.GATEWAY_STOPPED if leader.is_stopping else Reason.GATEWAY_SILENT)
    elif _must_yield(batch, leader):
        _elect_another(batch, Reason.GATEWAY_UNHEARD)


def _must_yield(batch: Batch, leader: Gateway) -> bool:
    """Return whether another gateway must lead, because brokers reach it rather than the leader.

    A gateway that hears more brokers takes over after half a time-out, and sooner if one of them would be fenced now.
    """
    state = batch.state
    quorum, brokers, now_ms = state.quorum, state.brokers, state.now_ms
    if now_ms < hearing.judged_from_ms(quorum, state.policy):
        return False
    other = hearing.most_reached(_live_but(batch, leader), brokers)
    if other is not None and hearing.is_deaf(leader, quorum, brokers):
        return True
    if other is None or not hearing.is_outdone(leader, other, brokers):
        commit_quorum(batch, replace(quorum, outdone_ms=NO_TIME))
        return False
    outdone_ms = now_ms if quorum.outdone_ms == NO_TIME else quorum.outdone_ms
    commit_quorum(batch, replace(quorum, outdone_ms=outdone_ms))
    only_there = hearing.heard(other, brokers) - hearing.heard(leader, brokers)
    is_urgent = any(
        brokers[one].is_live and not has_session(batch, brokers[one]) for one in only_there & brokers.keys()
    )
    return is_urgent or now_ms - outdone_ms >= state.policy.controller_quorum_fetch_timeout_ms // 2


def is_led(batch: Batch) -> bool:
    """Return whether the leader of the quorum was heard in time and is not stopping."""
    leader = batch.state.gateways.get(batch.state.quorum.voter)
    return leader is not None and is_live(batch, leader)


def silence_counts_until(batch: Batch, broker: Broker) -> int:
    """Return the time up to which a broker's silence counts.

    That is now. For a broker behind a gateway it is the last heartbeat of the leading gateway, at the earliest.
    """
    leader = batch.state.gateways.get(batch.state.quorum.voter) if broker.is_kraft else None
    return batch.state.now_ms if leader is None else leader.heard_ms


def has_session(batch: Batch, broker: Broker) -> bool:
    """Return whether a broker, fenced or not, was heard within its session time-out."""
    if broker.last_contact_ms == NO_TIME:
        return False
    return silence_counts_until(batch, broker) - broker.last_contact_ms < batch.state.policy.broker_session_timeout_ms


def with_session(batch: Batch) -> list[Broker]:
    """List the brokers whose silence counts: the live ones, and fenced ones that were heard within their session."""
    return [broker for broker in batch.state.brokers.values() if broker.is_live or has_session(batch, broker)]


def forgive_silence(batch: Batch) -> None:
    """Do not count a time without a controller as silence of the gateways.

    Each claim does so. Claims follow each other more slowly than a gateway's silence takes.
    """
    for gateway in list(batch.state.gateways.values()):
        commit_gateway(batch, replace(gateway, last_contact_ms=batch.state.now_ms, heard_ms=batch.state.now_ms))


def lead_on(batch: Batch) -> None:
    """After a time without a controller, let the leader continue in another epoch.

    Bus and gateways may be a restored backup, and brokers may have read other decisions of the last epoch than those
    that follow here. In any case, announce the claim's settings to the brokers.
    """
    leader = batch.state.gateways.get(batch.state.quorum.voter)
    unheard_ms = batch.state.now_ms - batch.state.quorum.heard_ms
    if leader is not None and unheard_ms >= batch.state.policy.controller_quorum_fetch_timeout_ms:
        # What it heard before that time is not what it hears now.
        _elect(batch, replace(leader, hears=None), _unheard(batch), Reason.CONTROLLER_STARTED)
    tell_changed_settings(batch)


def _elect_another(batch: Batch, reason: Reason) -> None:
    leader = batch.state.gateways[batch.state.quorum.voter]
    other = hearing.most_reached(_live_but(batch, leader), batch.state.brokers)
    if other is not None:
        _elect(batch, other, _unheard(batch), reason)


def _live_but(batch: Batch, leader: Gateway) -> list[Gateway]:
    return [one for one in batch.state.gateways.values() if is_live(batch, one) and one.gateway != leader.gateway]


def _elect(batch: Batch, gateway: Gateway, unheard: list[tuple[Broker, int]], reason: Reason) -> None:
    """Make a gateway the leader. Give a new session to the brokers behind gateways (``_unheard``)."""
    state = batch.state
    who = (gateway.gateway, gateway.incarnation, gateway.voters)
    epoch = state.quorum.quorum_epoch + _epochs_on(batch)
    now_ms = state.now_ms
    quorum = Quorum(*who, epoch, _at_least_ms(batch), gateway.is_kraft, no_op_ms=now_ms, began_ms=now_ms)
    commit_quorum_epoch(batch, quorum, reason)
    tell_changed_settings(batch)
    for broker, unheard_ms in unheard:
        _give_session(batch, gateway, broker, unheard_ms, reason)


def _give_session(batch: Batch, leader: Gateway, broker: Broker, unheard_ms: int, reason: Reason) -> None:
    """Give a broker time to find a new leader and a whole session.

    If other brokers reached this gateway already, so could this one while the former leader fell silent. So that time
    is the broker's own silence. If the former leader lives, it tells a broker that reaches it who leads, and any other
    has searched for a while. So a session is time enough.
    """
    policy = batch.state.policy
    in_ms = sessions.find_leader_ms(policy)
    hears = hearing.heard(leader, batch.state.brokers)
    if broker.broker in hears:
        unheard_ms = batch.state.now_ms - broker.heard_ms
    elif hears:
        unheard_ms = max(0, unheard_ms - policy.controller_quorum_fetch_timeout_ms)
        if reason is Reason.GATEWAY_UNHEARD:
            in_ms = max(0, in_ms - policy.broker_session_timeout_ms)
    sessions.grant_whole_session(batch, [broker], in_ms, unheard_ms)


def _epochs_on(batch: Batch) -> int:
    """Return by how much the epoch rises: by one, or after a silence by one for each half second of it.

    If bus and gateways were restored from a backup, brokers have seen epochs that the event log does not know, at most
    one each half second. If one of them were used again, brokers would take its records for those that they have read.
    """
    if batch.state.quorum.heard_ms == 0:
        return 1
    return max(1, min((_at_least_ms(batch) - batch.state.quorum.heard_ms) // EPOCH_MS, EPOCHS_ON_MAX))


def _at_least_ms(batch: Batch) -> int:
    """Return the latest known time. While no job decides, the clock stands still, but a claim shows the time."""
    return max(batch.state.now_ms, batch.logged.found_ms or 0)


def _behind(batch: Batch) -> list[Broker]:
    return [broker for broker in with_session(batch) if broker.is_kraft]


def _unheard(batch: Batch) -> list[tuple[Broker, int]]:
    """Return the brokers behind gateways that have a session, each with the time for which no leader could hear it."""
    now_ms = batch.state.now_ms
    return [(broker, now_ms - silence_counts_until(batch, broker)) for broker in _behind(batch)]


def is_live(batch: Batch, gateway: Gateway) -> bool:
    """Return whether a gateway was heard lately and does not stop."""
    silent_ms = batch.state.now_ms - gateway.last_contact_ms
    return not gateway.is_stopping and silent_ms < batch.state.policy.controller_quorum_fetch_timeout_ms
