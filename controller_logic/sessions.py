"""The time when a broker was last heard, and what does not count as silence.

A session is the least silence before a fence. Events come between two ticks, and the engine's clock moves at ticks and
claims only. So a heartbeat, also a gateway's, and the loss of a connection count at the tick or claim that follows.
So no broker is fenced and no gateway deposed too early, and at most one tick too late:

    tick 1,000   heartbeat   tick 1,500    ...    tick 10,000    tick 10,500
                             heard at 1,500       not 9 s yet    fenced

In a log that no bus kept, as people write it by hand, ticks may be far apart, and no clock is wrong. There each
event counts at its own time, but no later than the tick.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from controller_logic.batch import Batch
from controller_logic.commit_cluster import commit_broker, commit_gateway
from state.broker import Broker
from state.event import Event
from state.ids import NO_TIME
from state.policy import Policy

# A broker gives up on a frozen leader after one time-out and may then ask it once more as one of the voters. Its
# heartbeats follow its fetches.
FIND_LEADER_TIMEOUTS = 3


def find_leader_ms(policy: Policy) -> int:
    """Return how long brokers may take to find another leading gateway."""
    return FIND_LEADER_TIMEOUTS * policy.controller_quorum_fetch_timeout_ms


def time_of_event(batch: Batch) -> int:
    """Return when the event at hand counts until the clock moves on."""
    event, now_ms = batch.logged.event, batch.state.now_ms
    return max(now_ms, event.time_ms) if batch.logged.is_by_hand and isinstance(event, Event) else now_ms


def with_contact(batch: Batch, broker: Broker) -> Broker:
    """Return a broker that has just sent a heartbeat."""
    heard_ms = time_of_event(batch)
    return replace(
        broker,
        last_contact_ms=heard_ms,
        connection_lost_ms=NO_TIME,
        heard_ms=heard_ms,
        heard_since_tick=True,
        lost_since_tick=False,
    )


def settle(batch: Batch) -> None:
    """Count what came since the clock last moved, as the clock moves on. A time that was reset since stays reset."""
    now_ms, is_by_hand = batch.state.now_ms, batch.logged.is_by_hand
    for broker in list(batch.state.brokers.values()):
        if broker.heard_since_tick or broker.lost_since_tick:
            commit_broker(batch, _settled(broker, now_ms, is_by_hand=is_by_hand))
    for gateway in list(batch.state.gateways.values()):
        if gateway.heard_since_tick:
            contact_ms = min(gateway.last_contact_ms, now_ms) if is_by_hand else now_ms
            commit_gateway(batch, replace(gateway, last_contact_ms=contact_ms, heard_since_tick=False))


def _settled(broker: Broker, now_ms: int, *, is_by_hand: bool) -> Broker:
    contact_ms, heard_ms, lost_ms = broker.last_contact_ms, broker.heard_ms, broker.connection_lost_ms
    if broker.heard_since_tick and contact_ms != NO_TIME:
        at_ms = min(heard_ms, now_ms) if is_by_hand else max(heard_ms, now_ms)
        # A session that was granted meanwhile stays.
        contact_ms = at_ms if contact_ms == heard_ms else max(contact_ms, at_ms)
        heard_ms = at_ms
    if broker.lost_since_tick and lost_ms != NO_TIME:
        lost_ms = min(lost_ms, now_ms) if is_by_hand else now_ms
    times = {"last_contact_ms": contact_ms, "heard_ms": heard_ms, "connection_lost_ms": lost_ms}
    return replace(broker, **times, heard_since_tick=False, lost_since_tick=False)


def grant_whole_session(batch: Batch, brokers: Iterable[Broker], in_ms: int = 0, unheard_ms: int = 0) -> None:
    """Give brokers a whole session that begins ``in_ms`` from now, unless they are heard before then.

    For ``unheard_ms`` no controller or gateway could hear them. However often sessions are granted, a silent broker is
    fenced once two sessions and the time to find a leader have passed, not counting ``unheard_ms``.
    """
    policy, now_ms = batch.state.policy, batch.state.now_ms
    grace_ms = policy.broker_session_timeout_ms + find_leader_ms(policy)
    for broker in brokers:
        heard_ms = max(broker.heard_ms, min(now_ms, broker.heard_ms + unheard_ms))
        last_contact_ms = max(broker.last_contact_ms, min(now_ms + in_ms, heard_ms + grace_ms))
        granted = replace(broker, last_contact_ms=last_contact_ms, connection_lost_ms=NO_TIME, heard_ms=heard_ms)
        commit_broker(batch, granted)


def extend(batch: Batch, by_ms: int, brokers: Iterable[Broker]) -> None:
    """Shift each broker's last contact forward by ``by_ms``, at most to now."""
    for broker in list(brokers):
        lost_ms = broker.connection_lost_ms
        commit_broker(
            batch,
            replace(
                broker,
                last_contact_ms=max(broker.last_contact_ms, min(batch.state.now_ms, broker.last_contact_ms + by_ms)),
                connection_lost_ms=lost_ms if lost_ms == NO_TIME else min(batch.state.now_ms, lost_ms + by_ms),
                heard_ms=max(broker.heard_ms, min(batch.state.now_ms, broker.heard_ms + by_ms)),
            ),
        )
