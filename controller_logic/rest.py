"""What may wait on a quiet cluster (ticks at which nothing is due, heartbeats that change nothing), and what may not.

Decisions do not depend on how the log is cut into batches, and a batch costs as much CPU if it decides nothing. So an
engine at rest may leave such events on the bus for a while and decide them together. This file says which events those
are. It may call something due that leads to no decision, but never the opposite: ``tests/properties/test_rest.py``.
"""

from collections.abc import Iterable, Iterator

from msgspec import UNSET

from controller_logic import hearing
from state.broker import BrokerState
from state.cluster import Cluster
from state.entity import TOKEN, TOKEN_EXPIRY
from state.events import AnyEvent, BrokerHeartbeat, GatewayHeartbeat, Malformed, Progress, Tick
from state.ids import NO_TIME
from state.metadata_format import NO_OP_FORMAT
from state.metadata_quorum import Gateway
from state.policy import Policy

# Every tick has reached it.
AT_ONCE = 0


def next_due_ms(clusters: Iterable[Cluster], policy: Policy) -> int | None:
    """Return from when on a tick may lead to a decision, by the engine's clock; None if only an event can.

    ``clusters`` are all shards' parts of one state, and ``policy`` the settings in force. Heartbeats that
    ``changes_nothing`` is true of put the time off, and nothing brings it forward but other events.
    """
    return min((_unless_past(due, cluster) for cluster in clusters for due in _dues(cluster, policy)), default=None)


def _unless_past(due_ms: int, cluster: Cluster) -> int:
    """Return when it is due. A tick may be behind the clock, so what the clock has reached is due at once."""
    return due_ms if due_ms > cluster.clock_ms else AT_ONCE


def _dues(cluster: Cluster, policy: Policy) -> Iterator[int]:
    if cluster.watermarks_due or cluster.deletions_due:
        yield AT_ONCE
    for entity in cluster.entities.values():
        if entity.entity_type == TOKEN:
            yield int(entity.values[TOKEN_EXPIRY])
    # All shards know the same of what follows.
    if cluster.writes_cluster_decisions:
        yield from _of_brokers(cluster, policy)
        yield from _of_gateways(cluster, policy)
        if policy.auto_leader_rebalance_enable:
            yield cluster.balance_due_ms


def _of_brokers(cluster: Cluster, policy: Policy) -> Iterator[int]:
    grace_ms = policy.broker_connection_lost_grace_ms
    # While no gateway leads, the silence of a broker behind one does not grow.
    still_ms = _stands_still_at(cluster, policy)
    for broker in cluster.brokers.values():
        if broker.is_live:
            heard_ms, lost_ms = broker.last_contact_ms, broker.connection_lost_ms
            if heard_ms == NO_TIME:
                yield AT_ONCE
                continue
            ends_ms = [heard_ms + policy.broker_session_timeout_ms]
            if grace_ms >= 0 and lost_ms != NO_TIME:
                ends_ms.append(lost_ms + grace_ms)
            if broker.behind_gateway and still_ms is not None:
                yield from (AT_ONCE for end_ms in ends_ms if end_ms <= still_ms)
            else:
                yield from ends_ms


def _of_gateways(cluster: Cluster, policy: Policy) -> Iterator[int]:
    quorum = cluster.quorum
    leader = cluster.gateways.get(quorum.voter)
    if leader is None:
        return
    if not _is_live(leader, cluster, policy):
        # Another one leads at once. If there is none, the next one does that is heard.
        if any(_is_live(gateway, cluster, policy) for gateway in cluster.gateways.values()):
            yield AT_ONCE
        return
    yield leader.last_contact_ms + policy.controller_quorum_fetch_timeout_ms
    others = [
        one for one in cluster.gateways.values() if one.gateway != leader.gateway and _is_live(one, cluster, policy)
    ]
    other = hearing.most_reached(others, cluster.brokers)
    if other is not None and hearing.is_in_doubt(leader, other, quorum, cluster.brokers):
        yield hearing.judged_from_ms(quorum, policy)
    if policy.metadata_max_idle_interval_ms and quorum.metadata_format >= NO_OP_FORMAT:
        yield quorum.no_op_ms + policy.metadata_max_idle_interval_ms


def _stands_still_at(cluster: Cluster, policy: Policy) -> int | None:
    """Return up to when silence behind a gateway counts; None if that is now, because one leads or none has started."""
    leader = cluster.gateways.get(cluster.quorum.voter)
    return None if leader is None or _is_live(leader, cluster, policy) else leader.heard_ms


def _is_live(gateway: Gateway, cluster: Cluster, policy: Policy) -> bool:
    silent_ms = cluster.clock_ms - gateway.last_contact_ms
    return not gateway.is_stopping and silent_ms < policy.controller_quorum_fetch_timeout_ms


def changes_nothing(event: AnyEvent | Malformed | Progress, cluster: Cluster, policy: Policy) -> bool:
    """Say whether an event only shows that somebody lives whose state stays as it is, or is a tick.

    An event whose time is ahead of the bus's is refused whatever this says. While no gateway leads, the next one that
    is heard leads, and silence behind it counts again.
    """
    if isinstance(event, Tick):
        return event.request_id is None and event.controller_epoch == cluster.controller_epoch
    if isinstance(event, BrokerHeartbeat):
        broker = cluster.brokers.get(event.broker)
        says_more = event.want_fence or event.want_shutdown or event.offline_log_dirs or event.request_id is not None
        return (
            broker is not None
            and broker.state == BrokerState.active
            and broker.broker_epoch == event.broker_epoch
            and not says_more
        )
    if isinstance(event, GatewayHeartbeat):
        gateway = cluster.gateways.get(event.gateway)
        says_more = event.want_shutdown or event.metadata_format is not UNSET
        return (
            gateway is not None
            and gateway.incarnation == event.incarnation
            and _is_live(gateway, cluster, policy)
            and event.hears in (UNSET, gateway.hears)
            and not says_more
            and event.request_id is None
            and _stands_still_at(cluster, policy) is None
        )
    return False


def asks_to_serve(event: AnyEvent | Malformed | Progress, cluster: Cluster) -> bool:
    """Say whether a fenced broker will be active after this heartbeat. Clients may be waiting for its partitions."""
    if not isinstance(event, BrokerHeartbeat) or event.want_fence or event.want_shutdown:
        return False
    broker = cluster.brokers.get(event.broker)
    return broker is not None and broker.state == BrokerState.fenced and broker.broker_epoch == event.broker_epoch
