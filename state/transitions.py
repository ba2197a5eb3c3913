"""The transitions that Kafka's two state machines allow, as tables.

They are the valid previous states of each state in Kafka's ``PartitionState`` and ``ReplicaState``.
"""

from collections.abc import Mapping, Set
from enum import IntEnum
from typing import TypeVar

from state.partition import PartitionState as P
from state.partition import ReplicaState as R

_S = TypeVar("_S", bound=IntEnum)

PARTITION_MAY_COME_FROM: Mapping[P, Set[P]] = {
    P.NonExistentPartition: frozenset({P.OfflinePartition}),
    P.NewPartition: frozenset({P.NonExistentPartition}),
    P.OnlinePartition: frozenset({P.NewPartition, P.OnlinePartition, P.OfflinePartition}),
    P.OfflinePartition: frozenset({P.NewPartition, P.OnlinePartition, P.OfflinePartition}),
}

_SERVED = frozenset({R.NewReplica, R.OnlineReplica, R.OfflineReplica, R.ReplicaDeletionIneligible})

REPLICA_MAY_COME_FROM: Mapping[R, Set[R]] = {
    R.NonExistentReplica: frozenset({R.ReplicaDeletionSuccessful}),
    R.NewReplica: frozenset({R.NonExistentReplica}),
    R.OnlineReplica: _SERVED,
    R.OfflineReplica: _SERVED,
    R.ReplicaDeletionStarted: frozenset({R.OfflineReplica}),
    R.ReplicaDeletionSuccessful: frozenset({R.ReplicaDeletionStarted}),
    R.ReplicaDeletionIneligible: frozenset({R.OfflineReplica, R.ReplicaDeletionStarted}),
}


def _within_one_event(may_come_from: Mapping[_S, Set[_S]], passed: Set[_S]) -> frozenset[tuple[_S, _S]]:
    """Return the pairs (from, to) of one transition, or of several through the states in ``passed``."""
    pairs = {(origin, target) for target, origins in may_come_from.items() for origin in origins}
    while True:
        longer = {(a, d) for a, b in pairs for c, d in pairs if b == c and b in passed}
        if longer <= pairs:
            return frozenset(pairs)
        pairs |= longer


# In the passed states a partition waits for nothing from outside, so one event may lead through them.
PARTITION_TRANSITIONS = _within_one_event(PARTITION_MAY_COME_FROM, frozenset({P.NewPartition, P.OfflinePartition}))
REPLICA_TRANSITIONS = _within_one_event(REPLICA_MAY_COME_FROM, frozenset({R.NewReplica, R.OfflineReplica}))
