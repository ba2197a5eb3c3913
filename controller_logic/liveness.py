"""The life of a broker: registration, heartbeats, sessions (KIP-631, ``ClusterControlManager``).

| from                | to                  | when                                                   |
|---------------------|---------------------|--------------------------------------------------------|
| unknown             | fenced              | it registers                                           |
| fenced              | active              | a heartbeat that wants no fence                        |
| active              | controlled_shutdown | it asks to shut down                                   |
| active, c_shutdown  | fenced              | its session ran out, it asks for it, it registers anew |
| any                 | unknown             | it is unregistered                                     |

Registering again in the same incarnation amends what is known, and changes no state.
"""

from msgspec.structs import replace

from isrflow.controller_logic import fencing
from isrflow.controller_logic.availability import broker_started, brokers_failed
from isrflow.controller_logic.draft import Draft
from isrflow.controller_logic.shutdown import ask_shutdown
from isrflow.state.broker import Broker, BrokerState
from isrflow.state.events import BrokerConnectionLost, BrokerHeartbeat, BrokerRegister, BrokerUnregister
from isrflow.state.reason import Reason


def register(draft: Draft, event: BrokerRegister) -> None:
    """Register a broker, fenced until its first heartbeat; its epoch is this event's seq.

    A new incarnation of a live broker is a bounce: what it held fails first (KIP-380).
    """
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
        last_contact_ms=draft.now,
    )
    draft.put_broker(broker)
    draft.say_broker(broker, Reason.BROKER_REGISTERED if former is None else Reason.BROKER_RESTARTED)
    draft.answer(broker=broker.broker, broker_epoch=broker.broker_epoch)
    if former is not None and former.is_live:
        brokers_failed(draft, frozenset({event.broker}))


def _amend(draft: Draft, event: BrokerRegister, former: Broker) -> None:
    broker = replace(former, rack=event.rack, listeners=event.listeners, log_dirs=event.log_dirs)
    if broker != former:
        draft.put_broker(broker)
        draft.say_broker(broker, Reason.BROKER_REGISTERED)
    draft.answer(broker=broker.broker, broker_epoch=broker.broker_epoch)


def heartbeat(draft: Draft, event: BrokerHeartbeat) -> None:
    """Keep a broker's session, and do what it asks: to be let go, to be fenced, to be unfenced."""
    broker = fencing.in_its_epoch(draft, event.broker, event.broker_epoch)
    if broker is None:
        return
    broker = replace(broker, last_contact_ms=draft.now, offline_log_dirs=event.offline_log_dirs)
    draft.put_broker(broker)
    if event.want_shutdown:
        ask_shutdown(draft, broker)
        return
    draft.answer_if_asked(broker=broker.broker, broker_epoch=broker.broker_epoch)
    if event.want_fence and broker.is_live:
        _fence(draft, [broker], Reason.BROKER_ASKED_FENCE)
    elif not event.want_fence and broker.state == BrokerState.fenced:
        broker = replace(broker, state=BrokerState.active)
        draft.put_broker(broker)
        draft.say_broker(broker, Reason.BROKER_UNFENCED)
        broker_started(draft, broker.broker)


def expire_sessions(draft: Draft) -> bool:
    """Fence all brokers that have been silent for the session time-out or longer, together; say if any was."""
    timeout_ms = draft.policy.broker_session_timeout_ms
    silent = [b for b in draft.brokers.values() if b.is_live and draft.now - b.last_contact_ms >= timeout_ms]
    if silent:
        _fence(draft, silent, Reason.BROKER_SESSION_EXPIRED)
    return bool(silent)


def _fence(draft: Draft, brokers: list[Broker], reason: Reason) -> None:
    for broker in brokers:
        fenced = replace(broker, state=BrokerState.fenced)
        draft.put_broker(fenced)
        draft.say_broker(fenced, reason)
    brokers_failed(draft, frozenset(broker.broker for broker in brokers))


def unregister(draft: Draft, event: BrokerUnregister) -> None:
    """Forget a broker; its replicas stay assigned, offline."""
    broker = fencing.registered(draft, event.broker)
    if broker is None:
        return
    draft.remove_broker(broker.broker)
    draft.say_broker(replace(broker, state=BrokerState.unregistered), Reason.BROKER_UNREGISTERED)
    draft.answer(broker=broker.broker, broker_epoch=broker.broker_epoch)
    if broker.is_live:
        brokers_failed(draft, frozenset({broker.broker}))


def connection_lost(draft: Draft, event: BrokerConnectionLost) -> None:
    """Take the hint in; the session stays the authority, so nothing changes."""
    broker = fencing.in_its_epoch(draft, event.broker, event.broker_epoch)
    if broker is not None:
        draft.answer_if_asked(broker=broker.broker, broker_epoch=broker.broker_epoch)
