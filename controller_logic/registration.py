"""Who may have a broker's id (KIP-631, ``ClusterControlManager.registerBroker``).

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
from state.rules import OWN_ID_RULES


def refusal_of(batch: Batch, event: BrokerRegister) -> Refusal | None:
    """Refuse a process if another process has its id, or if another broker has its log directory."""
    former = batch.state.brokers.get(event.broker)
    if batch.state.rules_version < OWN_ID_RULES:
        return None
    if not event.behind_gateway and (former is None or not former.behind_gateway):
        return None
    if former is not None and former.incarnation != event.incarnation and _has_its_id(batch, event, former):
        message = f"another process is registered as broker {event.broker}, and its session is valid"
        return Refusal("DUPLICATE_BROKER_REGISTRATION", message)
    return _used_directory(batch, event)


def _has_its_id(batch: Batch, event: BrokerRegister, former: Broker) -> bool:
    is_known_dead = former.connection_lost_ms != NO_TIME and set(former.log_dirs) == set(event.log_dirs)
    return gateways.has_session(batch, former) and not is_known_dead


def _used_directory(batch: Batch, event: BrokerRegister) -> Refusal | None:
    """Refuse a log directory of another broker. Behind a gateway directories have ids, which tell them apart."""
    for other in batch.state.brokers.values():
        if other.broker != event.broker and other.behind_gateway and event.behind_gateway:
            shared = [directory for directory in event.log_dirs if directory in other.log_dirs]
            if shared:
                message = f"broker {other.broker} is registered with log directory {shared[0]}"
                return Refusal("INVALID_REGISTRATION", message)
    return None
