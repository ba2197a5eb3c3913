"""The states of a replica (Kafka's ``ReplicaStateMachine``).

| from                      | to             | when                                             |
|---------------------------|----------------|--------------------------------------------------|
| NonExistentReplica        | NewReplica     | its partition is created; left within that event |
| NewReplica                | OnlineReplica  | its broker is active                             |
| NewReplica, OnlineReplica | OfflineReplica | its broker is fenced or lets go, its log is lost |
| OfflineReplica            | OnlineReplica  | its broker is active again                       |
"""

from collections.abc import Set

from isrflow.state.partition import Partition, ReplicaState

_OFFLINE = ReplicaState.OfflineReplica
_ONLINE = ReplicaState.OnlineReplica

ReplicaStates = tuple[ReplicaState, ...]


def first_states(replicas: tuple[int, ...], active: Set[int]) -> ReplicaStates:
    """Give the states of the replicas of a partition that is being created."""
    return tuple([_ONLINE if replica in active else _OFFLINE for replica in replicas])


def taken_offline(partition: Partition, lost: Set[int]) -> ReplicaStates:
    """Give the states once the replicas on ``lost`` are offline."""
    pairs = zip(partition.replicas, partition.replica_states, strict=True)
    return tuple([_OFFLINE if replica in lost else state for replica, state in pairs])


def taken_online(partition: Partition, broker: int) -> ReplicaStates:
    """Give the states once the replica on ``broker`` is online."""
    pairs = zip(partition.replicas, partition.replica_states, strict=True)
    return tuple([_ONLINE if replica == broker else state for replica, state in pairs])


def online_replicas(replicas: tuple[int, ...], states: ReplicaStates, active: Set[int]) -> tuple[int, ...]:
    """List the replicas that may lead or join an ISR, in the order of their assignment."""
    return tuple([r for r, state in zip(replicas, states, strict=True) if r in active and state != _OFFLINE])
