"""Rules that hold for every partition at all times.

A rule's name says what should be true. The commit pipeline checks the rules before each change, in production too,
and withholds a change that breaks one.
"""

from collections.abc import Container, Set
from functools import lru_cache

from state.ids import NO_EPOCH, NO_LEADER
from state.partition import LeaderRecoveryState, Partition, PartitionState, ReplicaState
from state.transitions import PARTITION_TRANSITIONS, REPLICA_TRANSITIONS

# Bound once because every change needs them, and looking a member up in its enum costs more than comparing it.
_ONLINE = PartitionState.OnlinePartition
_RECOVERING = LeaderRecoveryState.RECOVERING
# States of a replica that is assigned again. It is online at once if an unclean leader is the whole target, and
# offline if its broker may not lead and has records that no other replica has.
_ASSIGNED_AGAIN = (ReplicaState.NewReplica, ReplicaState.OnlineReplica, ReplicaState.OfflineReplica)


def broken_rules(
    before: Partition, after: Partition, awaited: Container[int] | None = None, live: Set[int] | None = None
) -> list[str]:
    """List the rules that a change from ``before`` to ``after`` breaks; empty if all hold.

    ``awaited`` brokers report what they delete. A replica on another broker may be forgotten in any state. ``live``
    brokers serve. None means all brokers.
    """
    isr, replicas, leader = after.isr, after.replicas, after.leader
    assigned = set(replicas)
    broken: list[str] = []
    if not assigned.issuperset(isr):
        broken.append("every member of the ISR is an assigned replica")
    if leader != NO_LEADER and leader not in isr:
        broken.append("the leader is in the ISR")
    if not isr or after.elr or after.last_known_elr:
        broken += _broken_eligibility(after, assigned)
    if len(isr) != len(set(isr)) or len(replicas) != len(assigned):
        broken.append("the members of the ISR, and the replicas, are distinct")
    if (leader != NO_LEADER) != (after.state == _ONLINE):
        broken.append("a partition is online exactly when it has a leader")
    if after.leader_recovery_state == _RECOVERING:
        broken += _broken_recovery(before, after)
    if after.adding_replicas or after.removing_replicas:
        broken += _broken_reassignment(after)
    if len(after.replica_states) != len(replicas):
        broken.append("every replica has a state")
    elif after.replica_states != before.replica_states or after.removed != before.removed:
        broken += _broken_replica_transitions(before, after, awaited)
    if live is not None:
        broken += _broken_service(before, after, live)
    broken += _broken_shape(after, assigned)
    if after.state != before.state and (before.state, after.state) not in PARTITION_TRANSITIONS:
        broken.append(f"a partition does not go from {before.state.name} to {after.state.name}")
    broken += _broken_epochs(before, after)
    return broken


def _broken_replica_transitions(before: Partition, after: Partition, awaited: Container[int] | None) -> tuple[str, ...]:
    if after.replicas == before.replicas and after.removed == before.removed:
        return _refused_transitions(before.replica_states, after.replica_states)
    held, become = _all_states(before), _all_states(after)
    absent = ReplicaState.NonExistentReplica
    # A removed replica that is assigned again starts over, even if its broker has yet to report the old log's end.
    again = {entry.broker for entry in before.removed if become.get(entry.broker) in _ASSIGNED_AGAIN}
    held |= dict.fromkeys(again, absent)
    if after.state == PartitionState.NonExistentPartition:
        # A deletion may forget the replicas that a reassignment had removed, whatever has become of their logs.
        removed = {entry.broker for entry in before.removed}
        held = {replica: state for replica, state in held.items() if replica in become or replica not in removed}
    if awaited is not None:
        held = {replica: state for replica, state in held.items() if replica in become or replica in awaited}
    transitions = [(held.get(replica, absent), become.get(replica, absent)) for replica in {**held, **become}]
    # A removed replica is forgotten in the event that reports its log gone. Before the first leader no replica has a
    # log, so any may be forgotten.
    forgotten = {ReplicaState.ReplicaDeletionStarted} if before.leader_epoch != NO_EPOCH else set(ReplicaState)
    transitions = [(origin, to) for origin, to in transitions if to != absent or origin not in forgotten]
    return _refused_transitions(tuple([origin for origin, _ in transitions]), tuple([to for _, to in transitions]))


@lru_cache(maxsize=4_096)
def _refused_transitions(origins: tuple[ReplicaState, ...], targets: tuple[ReplicaState, ...]) -> tuple[str, ...]:
    broken = []
    for origin, target in zip(origins, targets, strict=True):
        if origin != target and (origin, target) not in REPLICA_TRANSITIONS:
            broken.append(f"a replica does not go from {origin.name} to {target.name}")
    return tuple(broken)


def _all_states(partition: Partition) -> dict[int, ReplicaState]:
    removed = {entry.broker: entry.state for entry in partition.removed}
    return removed | dict(zip(partition.replicas, partition.replica_states, strict=True))


def _broken_service(before: Partition, after: Partition, live: Set[int]) -> list[str]:
    broken = []
    if after.leader != NO_LEADER and after.leader not in live:
        broken.append("a leader is not fenced")
    if len(after.isr) > 1 and after.isr != before.isr and set(after.isr) - live:
        broken.append("a fenced member of another ISR is its only one")
    return broken


def _broken_shape(after: Partition, assigned: Set[int]) -> list[str]:
    broken = []
    if after.removed and not assigned.isdisjoint([entry.broker for entry in after.removed]):
        broken.append("no broker is both assigned and removed")
    count = len(after.replicas)
    for held in (
        after.log_end_offsets,
        after.offset_epochs,
        after.lags,
        after.completed_epochs,
        after.requested_epochs,
        after.received_epochs,
        after.directories,
    ):
        if held and len(held) != count:
            broken.append("entries about replicas are one for each replica")
    return broken


def _broken_eligibility(after: Partition, assigned: set[int]) -> list[str]:
    broken = []
    if not (after.isr or after.elr or after.last_known_elr) and after.partition_epoch >= 0:
        broken.append("once a leader was elected, the ISR or what is known outside it is not empty")
    if not assigned.issuperset((*after.elr, *after.last_known_elr)):
        broken.append("eligible replicas and the last known leader are assigned")
    if not set(after.elr).isdisjoint(after.isr):
        broken.append("no eligible replica is in the ISR")
    if after.last_known_elr and after.leader != NO_LEADER:
        broken.append("a last leader is known only while there is none")
    return broken


def _broken_recovery(before: Partition, after: Partition) -> list[str]:
    if len(after.isr) > 1:
        return ["a leader that is recovering is alone in the ISR"]
    if before.leader_recovery_state == LeaderRecoveryState.RECOVERED and after.leader in before.in_sync:
        return ["a leader that begins to recover was not in the ISR"]
    return []


def _broken_reassignment(after: Partition) -> list[str]:
    adding, removing = set(after.adding_replicas), set(after.removing_replicas)
    broken = []
    if not adding | removing <= set(after.replicas):
        broken.append("replicas that are added or removed are assigned")
    if adding & removing:
        broken.append("no replica is both added and removed")
    if removing and set(after.replicas[-len(removing) :]) != removing:
        broken.append("the target of a reassignment comes first among the replicas")
    return broken


def _broken_epochs(before: Partition, after: Partition) -> list[str]:
    broken = []
    leader_step = after.leader_epoch - before.leader_epoch
    partition_step = after.partition_epoch - before.partition_epoch
    if not 0 <= leader_step <= partition_step <= 1:
        broken.append("epochs go up by one, the leader epoch never without the partition epoch")
    if after.leader != before.leader and leader_step == 0:
        broken.append("another leader has another leader epoch")
    if after.isr != before.isr and partition_step == 0:
        broken.append("another ISR has another partition epoch")
    return broken + broken_watermark(before, after)


def broken_watermark(before: Partition, after: Partition) -> list[str]:
    """List the rules that a change of the high watermark alone breaks."""
    if after.high_watermark_epoch == before.high_watermark_epoch and after.high_watermark < before.high_watermark:
        return ["the high watermark does not go back within a leader epoch"]
    return []
