"""The life of a broker: registration, heartbeats, sessions (KIP-631, ``ClusterControlManager``).

| from                | to                  | when                                                   |
|---------------------|---------------------|--------------------------------------------------------|
| unknown             | fenced              | it registers                                           |
| fenced              | active              | a heartbeat that wants no fence                        |
| active              | controlled_shutdown | it asks to shut down                                   |
| active, c_shutdown  | fenced              | its session ran out, it asks for it, it registers      |
|                     |                     | anew, its connection is lost for longer than allowed   |
| any                 | unknown             | it is unregistered                                     |

Registering again in the same incarnation amends what is known, and changes no state.
"""

from msgspec.structs import replace

from controller_logic import fencing, gateways
from controller_logic.availability import broker_started, broker_unregistered, brokers_failed
from controller_logic.draft import Draft
from controller_logic.registration import refusal_of
from controller_logic.sessions import extend, heard
from controller_logic.shutdown import ask_shutdown
from controller_logic.watermark import forget_log_ends
from state.broker import Broker, BrokerState
from state.events import (
    BrokerConnectionLost,
    BrokerHeartbeat,
    BrokerRegister,
    BrokerUnregister,
    SessionsExtended,
)
from state.ids import NO_TIME
from state.reason import Reason


def register(draft: Draft, event: BrokerRegister) -> None:
    """Register a broker, fenced until its first heartbeat; its epoch is this event's seq.

    A new incarnation of a live broker is a bounce: what it held fails first (KIP-380). What a former one told
    of its logs counts no more. Behind a gateway one that is not known to be dead keeps its id.
    """
    refusal = refusal_of(draft, event)
    if refusal is not None:
        draft.answer(*refusal, broker=event.broker)
        return
    former = draft.brokers.get(event.broker)
    if former is not None and former.incarnation == event.incarnation:
        _amend(draft, event, former)
        return
    broker = Broker(
        broker=event.broker,
        broker_epoch=draft.seq,
        incarnation=event.incarnation,
        state=BrokerState.fenced,
        rack=event.rack,
        listeners=event.listeners,
        log_dirs=event.log_dirs,
        # Behind a gateway the first heartbeat begins the session, as in Kafka.
        last_contact_ms=NO_TIME if event.behind_gateway else draft.now,
        features=event.features,
        behind_gateway=event.behind_gateway,
    )
    draft.put_broker(broker)
    draft.say_broker(broker, Reason.BROKER_REGISTERED if former is None else Reason.BROKER_RESTARTED)
    draft.answer(broker=broker.broker, broker_epoch=broker.broker_epoch)
    if former is not None and former.is_live:
        brokers_failed(draft, frozenset({event.broker}))
    forget_log_ends(draft, event.broker)


def _amend(draft: Draft, event: BrokerRegister, former: Broker) -> None:
    broker = replace(
        former,
        rack=event.rack,
        listeners=event.listeners,
        log_dirs=event.log_dirs,
        features=event.features,
        behind_gateway=event.behind_gateway,
    )
    if broker != former:
        draft.put_broker(broker)
        draft.say_broker(broker, Reason.BROKER_REGISTERED)
    draft.answer(broker=broker.broker, broker_epoch=broker.broker_epoch)


def heartbeat(draft: Draft, event: BrokerHeartbeat) -> None:
    """Keep a broker's session, and do what it asks: to be let go, to be fenced, to be unfenced."""
    broker = fencing.in_its_epoch(draft, event.broker, event.broker_epoch)
    if broker is None:
        return
    broker = heard(broker, draft.now)
    draft.put_broker(broker)
    if event.want_shutdown:
        ask_shutdown(draft, broker)
        return
    draft.answer_if_asked(broker=broker.broker, broker_epoch=broker.broker_epoch)
    if event.want_fence and broker.is_live:
        if broker.state == BrokerState.controlled_shutdown:
            # It is let go: whoever starts next under this id need not wait for a session to end.
            broker = replace(broker, last_contact_ms=NO_TIME)
        _fence(draft, [(broker, Reason.BROKER_ASKED_FENCE)])
    elif not event.want_fence and broker.state == BrokerState.fenced:
        broker = replace(broker, state=BrokerState.active)
        draft.put_broker(broker)
        draft.say_broker(broker, Reason.BROKER_UNFENCED)
        broker_started(draft, broker.broker)


def expire_sessions(draft: Draft) -> bool:
    """Fence all brokers that have been silent for too long, together; say if any was."""
    silent = [(b, reason) for b in draft.brokers.values() if b.is_live and (reason := _silence(draft, b)) is not None]
    if silent:
        _fence(draft, silent)
    return bool(silent)


def _silence(draft: Draft, broker: Broker) -> Reason | None:
    """Say which time-out a broker's silence has reached: its session's, or that of a lost connection."""
    if not gateways.has_session(draft, broker):
        return Reason.BROKER_SESSION_EXPIRED
    heard_until = gateways.heard_until(draft, broker)
    grace_ms = draft.policy.broker_connection_lost_grace_ms
    if grace_ms >= 0 and broker.connection_lost_ms != NO_TIME and heard_until - broker.connection_lost_ms >= grace_ms:
        return Reason.BROKER_CONNECTION_LOST
    return None


def sessions_extended(draft: Draft, event: SessionsExtended) -> None:
    """Take the time off every silence in which the engine itself was held up."""
    extend(draft, event.by_ms, gateways.with_session(draft))
    for gateway in draft.gateways.values():
        last_contact_ms = min(draft.now, gateway.last_contact_ms + event.by_ms)
        draft.gateways[gateway.gateway] = replace(gateway, last_contact_ms=last_contact_ms)
    draft.answer_if_asked()


def _fence(draft: Draft, brokers: list[tuple[Broker, Reason]]) -> None:
    for broker, reason in brokers:
        fenced = replace(broker, state=BrokerState.fenced)
        draft.put_broker(fenced)
        draft.say_broker(fenced, reason)
    brokers_failed(draft, frozenset(broker.broker for broker, _ in brokers))


def unregister(draft: Draft, event: BrokerUnregister) -> None:
    """Forget a broker, and what it had yet to remove; its replicas stay assigned, offline."""
    broker = fencing.registered(draft, event.broker)
    if broker is None:
        return
    draft.remove_broker(broker.broker)
    draft.say_broker(replace(broker, state=BrokerState.unregistered), Reason.BROKER_UNREGISTERED)
    draft.answer(broker=broker.broker, broker_epoch=broker.broker_epoch)
    if broker.is_live:
        brokers_failed(draft, frozenset({broker.broker}))
    broker_unregistered(draft, broker.broker)


def connection_lost(draft: Draft, event: BrokerConnectionLost) -> None:
    """Take the hint in: by broker.connection.lost.grace.ms the broker's session may end before its time.

    It is looked at when a tick comes, and a heartbeat before that voids it; but for a grace of 0, that waits
    for nothing.
    """
    broker = fencing.in_its_epoch(draft, event.broker, event.broker_epoch)
    if broker is None:
        return
    broker = replace(broker, connection_lost_ms=draft.now)
    draft.put_broker(broker)
    draft.answer_if_asked(broker=broker.broker, broker_epoch=broker.broker_epoch)
    if draft.policy.broker_connection_lost_grace_ms == 0 and broker.is_live:
        _fence(draft, [(broker, Reason.BROKER_CONNECTION_LOST)])
