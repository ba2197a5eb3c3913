"""Who may have a broker's id (KIP-631, ``ClusterControlManager.registerBroker``).

A broker behind a gateway has its id to itself as long as its session is valid: another process that registers
under it is refused, for it may have an empty disk. The session begins with the first heartbeat. It ends by
silence, when the broker has been let go in a controlled shutdown, and for a process on the same log directories when
the connection is known to be lost: the former one is dead, and this is what came of it.

All other brokers keep ZooKeeper mode's rule: another incarnation is a bounce.
"""

from controller_logic import gateways
from controller_logic.batch import Batch
from controller_logic.fencing import Refusal
from state.broker import Broker
from state.events import BrokerRegister
from state.ids import NO_TIME
from state.rules import OWN_ID_RULES


def refusal_of(batch: Batch, event: BrokerRegister) -> Refusal | None:
    """Refuse a process whose id another one has, or whose log directory another broker has."""
    former = batch.state.brokers.get(event.broker)
    if batch.state.rules_version < OWN_ID_RULES:
        return None
    if not event.behind_gateway and (former is None or not former.behind_gateway):
        return None
    if former is not None and former.incarnation != event.incarnation and _has_its_id(batch, event, former):
        message = f"another process is registered as broker {event.broker}, and its session is valid"
        return Refusal("DUPLICATE_BROKER_REGISTRATION", message)
    return _taken_directory(batch, event)


def _has_its_id(batch: Batch, event: BrokerRegister, former: Broker) -> bool:
    is_known_dead = former.connection_lost_ms != NO_TIME and set(former.log_dirs) == set(event.log_dirs)
    return gateways.has_session(batch, former) and not is_known_dead


def _taken_directory(batch: Batch, event: BrokerRegister) -> Refusal | None:
    """Refuse a log directory of another broker; behind a gateway directories are told by their ids."""
    for other in batch.state.brokers.values():
        if other.broker != event.broker and other.behind_gateway and event.behind_gateway:
            shared = [directory for directory in event.log_dirs if directory in other.log_dirs]
            if shared:
                message = f"broker {other.broker} is registered with log directory {shared[0]}"
                return Refusal("INVALID_REGISTRATION", message)
    return None
