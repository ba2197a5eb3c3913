"""The life of a broker: registration, heartbeats, sessions (KIP-631, ``ClusterControlManager``).

| from                | to                  | when                                                   |
|---------------------|---------------------|--------------------------------------------------------|
| unknown             | fenced              | it registers                                           |
| fenced              | active              | a heartbeat that wants no fence                        |
| active              | controlled_shutdown | it asks to shut down                                   |
| active, c_shutdown  | fenced              | its session expires, it asks for it, it registers      |
|                     |                     | again, its connection is lost for longer than allowed  |
| any                 | unknown             | it is unregistered                                     |

Registering again in the same incarnation amends the registration and changes no state.
"""

from msgspec import UNSET
from msgspec.structs import replace

from controller_logic import eligible_leaders, fencing, gateways, log_directories, replica_log, unclean_recovery
from controller_logic.availability import broker_started, broker_unregistered, brokers_failed, elect_leader
from controller_logic.batch import Batch
from controller_logic.commit_cluster import commit_broker, commit_gateway
from controller_logic.registration import refusal_of
from controller_logic.sessions import extend, time_of_event, with_contact
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
from state.level import NO_LEVEL
from state.reason import Reason


def register(batch: Batch, event: BrokerRegister) -> None:
    """Register a broker. It is fenced until its first heartbeat, and its epoch is this event's seq.

    A new incarnation of a live broker is a bounce: first all its replicas fail (KIP-380). What the former incarnation
    reported of its logs no longer counts. Behind a gateway, a broker that is not known to be dead keeps its id.
    """
    if event.level != NO_LEVEL and fencing.is_below_the_level(batch, event.level):
        return
    refusal = refusal_of(batch, event)
    if refusal is not None:
        batch.recorder.answer(*refusal, broker=event.broker)
        return
    former = batch.state.brokers.get(event.broker)
    if former is not None and former.incarnation == event.incarnation:
        _amend(batch, event, former)
        return
    # Behind a gateway the first heartbeat begins the session, as in Kafka.
    heard_ms = NO_TIME if event.behind_gateway else batch.state.now_ms
    broker = Broker(
        broker=event.broker,
        broker_epoch=batch.state.seq,
        incarnation=event.incarnation,
        state=BrokerState.fenced,
        rack=event.rack,
        listeners=event.listeners,
        log_dirs=event.log_dirs,
        last_contact_ms=heard_ms,
        offline_log_dirs=_offline_dirs(event, former),
        features=event.features,
        is_kraft=event.behind_gateway,
        heard_ms=heard_ms,
        level=event.level,
    )
    commit_broker(batch, broker, Reason.BROKER_REGISTERED if former is None else Reason.BROKER_RESTARTED)
    batch.recorder.answer(broker=broker.broker, broker_epoch=broker.broker_epoch)
    is_whole, is_former = has_whole_logs(event, former), replica_log.has_former_logs(batch, event, former)
    if former is not None and former.is_live:
        gone = frozenset({event.broker})
        brokers_failed(batch, gone, have_whole_logs=is_whole, have_former_logs=is_former and not is_whole)
    elif not is_whole:
        reason = Reason.BROKER_REGISTERED if former is None else Reason.BROKER_RESTARTED
        eligible_leaders.take_out_all(batch, event.broker, reason, has_former_logs=is_former)
    forget_log_ends(batch, event.broker)
    log_directories.registered(batch, former, broker)


def _offline_dirs(event: BrokerRegister, former: Broker | None) -> tuple[str, ...]:
    return log_directories.offline_dirs(former, event.log_dirs) if event.behind_gateway else ()


def has_whole_logs(event: BrokerRegister, former: Broker | None) -> bool:
    """Return whether the logs of a new process are proven to be complete.

    Its predecessor shut down cleanly if the process found that one's epoch in its directories (KIP-966). In place of a
    directory that is gone it makes an empty one.
    """
    is_clean = former is not None and event.previous_broker_epoch == former.broker_epoch
    return is_clean and former is not None and set(former.log_dirs).issubset(event.log_dirs)


def _amend(batch: Batch, event: BrokerRegister, former: Broker) -> None:
    broker = replace(
        former,
        rack=event.rack,
        listeners=event.listeners,
        log_dirs=event.log_dirs,
        offline_log_dirs=_offline_dirs(event, former),
        features=event.features,
        is_kraft=event.behind_gateway,
        level=event.level,
    )
    if broker != former:
        commit_broker(batch, broker, Reason.BROKER_REGISTERED)
    batch.recorder.answer(broker=broker.broker, broker_epoch=broker.broker_epoch)
    if broker.log_dirs != former.log_dirs:
        log_directories.registered(batch, former, broker)


def heartbeat(batch: Batch, event: BrokerHeartbeat) -> None:
    """Keep a broker's session, and do what it asks: to shut down, to be fenced, to be unfenced."""
    broker = fencing.in_its_epoch(batch, event.broker, event.broker_epoch)
    if broker is None:
        return
    broker = with_contact(batch, broker)
    commit_broker(batch, broker)
    if event.offline_log_dirs or event.cordoned_log_dirs is not UNSET:
        broker = _directories_told(batch, event, broker)
    if event.want_shutdown:
        ask_shutdown(batch, broker)
        return
    batch.recorder.answer_if_requested(broker=broker.broker, broker_epoch=broker.broker_epoch)
    if event.want_fence and broker.is_live:
        if broker.state == BrokerState.controlled_shutdown:
            # Its shutdown is complete, so the next process under this id need not wait for a session to end.
            broker = replace(broker, last_contact_ms=NO_TIME)
        _fence(batch, [(broker, Reason.BROKER_ASKED_FENCE)])
    elif not event.want_fence and broker.state == BrokerState.fenced:
        broker = replace(broker, state=BrokerState.active)
        commit_broker(batch, broker, Reason.BROKER_UNFENCED)
        broker_started(batch, broker.broker)


def _directories_told(batch: Batch, event: BrokerHeartbeat, broker: Broker) -> Broker:
    """Note cordoned and failed directories. At most one decision says both, and none if another one follows."""
    asks_for_more = _asks_for_more(batch, event, broker)
    cordoned = log_directories.with_cordoned(batch, broker, event.cordoned_log_dirs)
    reason = None if asks_for_more else Reason.LOG_DIR_FAILED
    after = log_directories.directories_failed(batch, cordoned, event.offline_log_dirs, reason)
    if after is cordoned and cordoned is not broker:
        commit_broker(batch, after, None if asks_for_more else Reason.LOG_DIRS_CORDONED)
    return after


def _asks_for_more(batch: Batch, event: BrokerHeartbeat, broker: Broker) -> bool:
    """Return whether a decision about the broker's state follows, whatever else the heartbeat says."""
    if event.want_shutdown:
        return batch.state.policy.controlled_shutdown_enable
    return broker.is_live if event.want_fence else broker.state == BrokerState.fenced


def expire_sessions(batch: Batch) -> bool:
    """Fence all brokers that have been silent for too long, in one step. Return whether there were any."""
    silent = [
        (b, reason) for b in batch.state.brokers.values() if b.is_live and (reason := _silence(batch, b)) is not None
    ]
    if silent:
        _fence(batch, silent)
    return bool(silent)


def _silence(batch: Batch, broker: Broker) -> Reason | None:
    """Return why a silent broker is fenced: its session or its lost connection's grace is over; None if neither."""
    if not gateways.has_session(batch, broker):
        return Reason.BROKER_SESSION_EXPIRED
    until_ms = gateways.silence_counts_until(batch, broker)
    grace_ms = batch.state.policy.broker_connection_lost_grace_ms
    if grace_ms >= 0 and broker.connection_lost_ms != NO_TIME and until_ms - broker.connection_lost_ms >= grace_ms:
        return Reason.BROKER_CONNECTION_LOST
    return None


def sessions_extended(batch: Batch, event: SessionsExtended) -> None:
    """Subtract the time in which the engine itself was held up from every broker's silence."""
    extend(batch, event.by_ms, gateways.with_session(batch))
    for gateway in list(batch.state.gateways.values()):
        last_contact_ms = min(batch.state.now_ms, gateway.last_contact_ms + event.by_ms)
        heard_ms = min(batch.state.now_ms, gateway.heard_ms + event.by_ms)
        commit_gateway(batch, replace(gateway, last_contact_ms=last_contact_ms, heard_ms=heard_ms))
    batch.recorder.answer_if_requested()


def _fence(batch: Batch, brokers: list[tuple[Broker, Reason]]) -> None:
    for broker, reason in brokers:
        fenced = replace(broker, state=BrokerState.fenced)
        commit_broker(batch, fenced, reason)
    brokers_failed(batch, frozenset(broker.broker for broker, _ in brokers))


def unregister(batch: Batch, event: BrokerUnregister) -> None:
    """Forget a broker and what it had yet to remove. Its replicas stay assigned, offline."""
    broker = fencing.registered_broker(batch, event.broker)
    if broker is None:
        return
    waiting = unclean_recovery.waiting_now(batch)
    commit_broker(batch, replace(broker, state=BrokerState.unregistered), Reason.BROKER_UNREGISTERED)
    batch.recorder.answer(broker=broker.broker, broker_epoch=broker.broker_epoch)
    if broker.is_live:
        brokers_failed(batch, frozenset({broker.broker}), have_whole_logs=False)
    else:
        eligible_leaders.take_out_all(batch, broker.broker, Reason.BROKER_UNREGISTERED)
    log_directories.unregistered(batch, broker)
    broker_unregistered(batch, broker.broker)
    # It is not waited for any more.
    for topic, partition in waiting:
        elect_leader(batch, topic, topic.partitions[partition.partition])


def connection_lost(batch: Batch, event: BrokerConnectionLost) -> None:
    """Note that a connection is lost. With broker.connection.lost.grace.ms the broker's session may end early.

    The next ticks check the grace period, and a heartbeat cancels it. It begins with the first loss since the last
    heartbeat. A grace of 0 does not wait for a tick.
    """
    broker = fencing.in_its_epoch(batch, event.broker, event.broker_epoch)
    if broker is None:
        return
    if broker.connection_lost_ms == NO_TIME:
        broker = replace(broker, connection_lost_ms=time_of_event(batch), lost_since_tick=True)
        commit_broker(batch, broker)
    batch.recorder.answer_if_requested(broker=broker.broker, broker_epoch=broker.broker_epoch)
    if batch.state.policy.broker_connection_lost_grace_ms == 0 and broker.is_live:
        _fence(batch, [(broker, Reason.BROKER_CONNECTION_LOST)])
