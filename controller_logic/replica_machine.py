"""The states of a replica (Kafka's ``ReplicaStateMachine``).

| to                        | from                               | when                                        |
|---------------------------|------------------------------------|---------------------------------------------|
| NewReplica                | NonExistent                        | its partition is created, or moved to it    |
| OnlineReplica             | New, Online, Offline, Ineligible   | its broker is active; its move is over      |
| OfflineReplica            | New, Online, Offline, Ineligible   | its broker is fenced or shuts down, its log |
|                           |                                    | is lost, or it is to be removed             |
| ReplicaDeletionStarted    | Offline                            | its broker serves, and is told to delete    |
| ReplicaDeletionSuccessful | DeletionStarted                    | its broker reports that the log is removed, |
|                           |                                    | or is away and removes it without a report  |
| ReplicaDeletionIneligible | Offline, DeletionStarted           | its broker is away, or reports a failure    |
| NonExistentReplica        | DeletionSuccessful                 | it is forgotten                             |

Any other transition is refused, and the replica keeps its state. Nothing is awaited from outside in ``NewReplica`` and
``OfflineReplica``, so a replica may pass through them within one event. The replicas of a new partition are therefore
online or offline at once; only a replica that a reassignment adds stays new for a while.
"""

from collections.abc import Set

from state.ids import NO_EPOCH
from state.partition import Partition, RemovedReplica, ReplicaState
from state.transitions import REPLICA_MAY_COME_FROM

_OFFLINE = ReplicaState.OfflineReplica
_ONLINE = ReplicaState.OnlineReplica

ReplicaStates = tuple[ReplicaState, ...]


def transition(state: ReplicaState, *path: ReplicaState) -> ReplicaState:
    """Take a replica from state to state along ``path``, as far as the transitions are allowed."""
    for target in path:
        if state not in REPLICA_MAY_COME_FROM[target]:
            return state
        state = target
    return state


def first_states(replicas: tuple[int, ...], active: Set[int]) -> ReplicaStates:
    """Return the states of a new partition's replicas."""
    return tuple([_ONLINE if replica in active else _OFFLINE for replica in replicas])


def states_with_offline(partition: Partition, lost: Set[int]) -> ReplicaStates:
    """Return the replicas' states with those on ``lost`` offline."""
    states = list(partition.replica_states)
    for place, replica in enumerate(partition.replicas):
        if replica in lost:
            states[place] = _OFFLINE
    return tuple(states)


def states_with_online(partition: Partition, broker: int) -> ReplicaStates:
    """Return the replicas' states with the one on ``broker`` online."""
    states = list(partition.replica_states)
    states[partition.replicas.index(broker)] = _ONLINE
    return tuple(states)


def to_be_deleted(state: ReplicaState, *, is_served: bool) -> ReplicaState:
    """Return the state of a replica whose log is to be removed: now if its broker is told, else later."""
    if is_served:
        return transition(state, _OFFLINE, ReplicaState.ReplicaDeletionStarted)
    return transition(state, _OFFLINE, ReplicaState.ReplicaDeletionIneligible)


def removed_replicas(partition: Partition, brokers: tuple[int, ...], live: Set[int]) -> tuple[RemovedReplica, ...]:
    """Return what to remember of replicas on ``brokers`` that are no longer assigned."""
    epoch = partition.leader_epoch
    if epoch == NO_EPOCH:
        # No broker was told to create a log.
        return ()
    held = dict(zip(partition.replicas, partition.replica_states, strict=True))
    return tuple([RemovedReplica(b, epoch, to_be_deleted(held[b], is_served=b in live)) for b in brokers])


def online_replicas(replicas: tuple[int, ...], states: ReplicaStates, active: Set[int]) -> tuple[int, ...]:
    """List the replicas that may lead or join an ISR, in the order of their assignment."""
    online = []
    for place, replica in enumerate(replicas):
        if replica in active and states[place] != _OFFLINE:
            online.append(replica)
    return tuple(online)
