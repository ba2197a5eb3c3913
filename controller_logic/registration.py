"""The process that may have a broker's id (KIP-631, ``ClusterControlManager.registerBroker``).

A broker behind a gateway has its id to itself while its session is valid. Another process that registers under the id
is refused, because it may have an empty disk. The session begins with the first heartbeat. It ends by silence or by a
controlled shutdown. For a process on the same log directories it also ends when the connection is known to be lost,
because then the former process is dead and this is its successor.

For all other brokers ZooKeeper mode's rule holds: another incarnation is a bounce.
"""

from controller_logic import gateways
from controller_logic.batch import Batch
from controller_logic.fencing import Refusal
from state.broker import Broker
from state.events import BrokerRegister
from state.ids import NO_TIME


def refusal_of(batch: Batch, event: BrokerRegister) -> Refusal | None:
    """Refuse a process whose id or log directory another process has."""
    former = batch.state.brokers.get(event.broker)
    if not event.behind_gateway and (former is None or not former.is_kraft):
        return None
    if former is not None and former.incarnation != event.incarnation and _has_its_id(batch, event, former):
        message = f"another process is registered as broker {event.broker}, and its session is valid"
        return Refusal("DUPLICATE_BROKER_REGISTRATION", message)
    return _used_directory(batch, event) or _too_many_directories(batch, event)


def _has_its_id(batch: Batch, event: BrokerRegister, former: Broker) -> bool:
    is_known_dead = former.connection_lost_ms != NO_TIME and _is_successor(event, former)
    return gateways.has_session(batch, former) and not is_known_dead


def _is_successor(event: BrokerRegister, former: Broker) -> bool:
    """Return whether a process has the former one's log directories, some of which may have failed since."""
    before, now = set(former.log_dirs), set(event.log_dirs)
    return before == now or not before.isdisjoint(now)


def _used_directory(batch: Batch, event: BrokerRegister) -> Refusal | None:
    """Refuse a log directory of another broker. Behind a gateway directories have ids, which tell them apart."""
    for other in batch.state.brokers.values():
        if other.broker != event.broker and other.is_kraft and event.behind_gateway:
            shared = [directory for directory in event.log_dirs if directory in other.log_dirs]
            if shared:
                message = f"broker {other.broker} is registered with log directory {shared[0]}"
                return Refusal("INVALID_REGISTRATION", message)
    return None


def _too_many_directories(batch: Batch, event: BrokerRegister) -> Refusal | None:
    """Refuse a broker with several directories while there is no metadata log to say where its replicas are."""
    several = event.behind_gateway and len(event.log_dirs) > 1
    if several and not batch.state.quorum.is_kraft:
        message = f"it has {len(event.log_dirs)} log directories, and no KRaft gateway leads that can tell them apart"
        return Refusal("INVALID_REGISTRATION", message)
    return None
