"""The presence of brokers: their znodes become registrations and heartbeats.

ZooKeeper is the authority on sessions. So a broker with a znode counts as heard, and a broker whose znode is gone is
fenced at once. The brokers that the engine knows are compared with the znodes again and again, so an event that got
lost is repeated.
"""

from collections.abc import Iterator, Mapping

from brokers.gateways.zk.cluster_view import ClusterView
from brokers.gateways.zk.znodes import BrokerZnode
from state.decisions import BrokerDecision
from state.events import BrokerHeartbeat, BrokerRegister


def presence_events(
    present: Mapping[int, BrokerZnode], view: ClusterView, time_ms: int, *, beat: bool
) -> Iterator[BrokerRegister | BrokerHeartbeat]:
    """Yield the events that tell the engine which brokers are there; with ``beat``, even brokers known as active."""
    for number, found in sorted(present.items()):
        known = view.brokers.get(number)
        registered = (str(found.epoch), found.listeners, found.rack)
        if known is None or (known.incarnation, known.listeners, known.rack) != registered:
            yield BrokerRegister(
                time_ms=time_ms,
                broker=number,
                incarnation=str(found.epoch),
                rack=found.rack,
                listeners=found.listeners,
            )
        elif beat or known.state == "fenced":
            yield _heartbeat(known, time_ms, want_fence=False)
    for known in view.live:
        if known.broker not in present:
            yield _heartbeat(known, time_ms, want_fence=True)


def heartbeats(present: Mapping[int, BrokerZnode], view: ClusterView, time_ms: int) -> Iterator[BrokerHeartbeat]:
    """Yield a heartbeat of each broker that is there in the incarnation that the engine knows."""
    for number, found in sorted(present.items()):
        known = view.brokers.get(number)
        if known is not None and known.incarnation == str(found.epoch):
            yield _heartbeat(known, time_ms, want_fence=False)


def _heartbeat(known: BrokerDecision, time_ms: int, *, want_fence: bool) -> BrokerHeartbeat:
    return BrokerHeartbeat(
        time_ms=time_ms,
        broker=known.broker,
        broker_epoch=known.broker_epoch,
        want_fence=want_fence,
        want_shutdown=False,
    )
