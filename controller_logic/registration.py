"""Who may have a broker's id (KIP-631, ``ClusterControlManager.registerBroker``).

A broker behind a gateway has its id to itself while its session is valid. Another process that registers under the id
is refused, because it may have an empty disk. The session begins with the first heartbeat. It ends by silence or by a
controlled shutdown. For a process on the same log directories it also ends when the connection is known to be lost,
because then the former process is dead and this is its successor.

For all other brokers ZooKeeper mode's rule holds: another incarnation is a bounce.
"""

from controller_logic import gateways
from controller_logic.batch import Batch
from controller_logic.feature_checks import unsupported_level
from controller_logic.fencing import Refusal
from state.broker import Broker
from state.entity import FEATURES_ID, VOTERS_ID
from state.events import BrokerRegister
from state.features import KRAFT_VERSION
from state.ids import NO_TIME
from state.metadata_format import DIRECTORY_FORMAT
from state.rules import DIRECTORY_RULES, LEVEL_RULES, OWN_ID_RULES, SHARED_RULES


def refusal_of(batch: Batch, event: BrokerRegister) -> Refusal | None:
    """Refuse a process whose id or log directory another one has."""
    former = batch.state.brokers.get(event.broker)
    if batch.state.rules_version < OWN_ID_RULES:
        return None
    if not event.behind_gateway and (former is None or not former.behind_gateway):
        return None
    if former is not None and former.incarnation != event.incarnation and _has_its_id(batch, event, former):
        message = f"another process is registered as broker {event.broker}, and its session is valid"
        return Refusal("DUPLICATE_BROKER_REGISTRATION", message)
    return _unsupported_level(batch, event) or _used_directory(batch, event) or _too_many_directories(batch, event)


def _has_its_id(batch: Batch, event: BrokerRegister, former: Broker) -> bool:
    is_known_dead = former.connection_lost_ms != NO_TIME and _is_successor(batch, event, former)
    return gateways.has_session(batch, former) and not is_known_dead


def _is_successor(batch: Batch, event: BrokerRegister, former: Broker) -> bool:
    """Say whether a process has the former one's log directories, some of which may have failed since."""
    before, now = set(former.log_dirs), set(event.log_dirs)
    if batch.state.rules_version < DIRECTORY_RULES:
        return before == now
    return before == now or not before.isdisjoint(now)


def _unsupported_level(batch: Batch, event: BrokerRegister) -> Refusal | None:
    """Refuse a broker that does not support a level in force, by the rules of former versions.

    Shard 0 alone keeps the levels. So it refused brokers that all other shards registered.
    """
    if not LEVEL_RULES <= batch.state.rules_version < SHARED_RULES or not event.behind_gateway:
        return None
    entities = batch.state.entities
    levels = dict(entities[FEATURES_ID].values) if FEATURES_ID in entities else {}
    if VOTERS_ID in entities:
        levels[KRAFT_VERSION] = "1"
    found = unsupported_level(event.broker, event.features, levels)
    if found is None:
        return None
    feature, level, reason = found
    return Refusal("UNSUPPORTED_VERSION", f"{feature} has level {level}: {reason}")


def _used_directory(batch: Batch, event: BrokerRegister) -> Refusal | None:
    """Refuse a log directory of another broker. Behind a gateway directories have ids, which tell them apart."""
    for other in batch.state.brokers.values():
        if other.broker != event.broker and other.behind_gateway and event.behind_gateway:
            shared = [directory for directory in event.log_dirs if directory in other.log_dirs]
            if shared:
                message = f"broker {other.broker} is registered with log directory {shared[0]}"
                return Refusal("INVALID_REGISTRATION", message)
    return None


def _too_many_directories(batch: Batch, event: BrokerRegister) -> Refusal | None:
    """Refuse a broker with several directories until all gateways can write where its replicas are."""
    several = event.behind_gateway and len(event.log_dirs) > 1
    if not several or batch.state.rules_version < DIRECTORY_RULES:
        return None
    if batch.state.quorum.metadata_format < DIRECTORY_FORMAT:
        message = f"it has {len(event.log_dirs)} log directories, and a gateway is too old for more than one"
        return Refusal("INVALID_REGISTRATION", message)
    return None
