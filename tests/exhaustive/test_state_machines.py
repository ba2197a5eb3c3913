"""Every pair of states of both machines: a legal transition, or a refused one without effect."""

from itertools import product

import pytest
from msgspec.structs import replace

from controller_logic.batch import Batch
from controller_logic.commit import commit_partition
from controller_logic.replay import first_states
from controller_logic.replica_machine import transition
from state.alike import decisions_of
from state.broker import Broker, BrokerState
from state.change import PartitionChange
from state.cluster import State
from state.decisions import LeaderAndIsr, Rejected
from state.ids import NO_LEADER
from state.partition import Partition, PartitionState, ReplicaState, Topic, TopicState
from state.policy import Policy
from state.reason import Reason
from state.transitions import PARTITION_MAY_COME_FROM, PARTITION_TRANSITIONS, REPLICA_MAY_COME_FROM, REPLICA_TRANSITIONS

# Kafka's valid previous states, written out independently.
LEGAL_REPLICA = """
NonExistentReplica -> NewReplica
NewReplica -> OnlineReplica OfflineReplica
OnlineReplica -> OnlineReplica OfflineReplica
OfflineReplica -> OnlineReplica OfflineReplica ReplicaDeletionStarted ReplicaDeletionIneligible
ReplicaDeletionStarted -> ReplicaDeletionSuccessful ReplicaDeletionIneligible
ReplicaDeletionSuccessful -> NonExistentReplica
ReplicaDeletionIneligible -> OnlineReplica OfflineReplica
"""
LEGAL_PARTITION = """
NonExistentPartition -> NewPartition
NewPartition -> OnlinePartition OfflinePartition
OnlinePartition -> OnlinePartition OfflinePartition
OfflinePartition -> OnlinePartition OfflinePartition NonExistentPartition
"""
# Further transitions that one event may make by passing through another state, such as NewReplica or NewPartition.
IN_ONE_EVENT_REPLICA = """
NonExistentReplica -> OnlineReplica OfflineReplica ReplicaDeletionStarted ReplicaDeletionIneligible
NewReplica -> ReplicaDeletionStarted ReplicaDeletionIneligible
OnlineReplica -> ReplicaDeletionStarted ReplicaDeletionIneligible
ReplicaDeletionIneligible -> ReplicaDeletionStarted ReplicaDeletionIneligible
"""
IN_ONE_EVENT_PARTITION = """
NonExistentPartition -> OnlinePartition OfflinePartition NonExistentPartition
NewPartition -> NonExistentPartition
OnlinePartition -> NonExistentPartition
"""
ONLINE, OFFLINE = ReplicaState.OnlineReplica, ReplicaState.OfflineReplica


def pairs(table: str) -> set[tuple[str, str]]:
    rows = [line.split(" -> ") for line in table.strip().splitlines()]
    return {(origin, target) for origin, targets in rows for target in targets.split()}


def names(
    moves: frozenset[tuple[PartitionState, PartitionState]] | frozenset[tuple[ReplicaState, ReplicaState]],
) -> set[tuple[str, str]]:
    return {(origin.name, target.name) for origin, target in moves}


def test_the_tables_are_kafkas() -> None:
    replica = {(origin.name, to.name) for to, origins in REPLICA_MAY_COME_FROM.items() for origin in origins}
    partition = {(origin.name, to.name) for to, origins in PARTITION_MAY_COME_FROM.items() for origin in origins}
    assert replica == pairs(LEGAL_REPLICA)
    assert partition == pairs(LEGAL_PARTITION)


def test_one_event_passes_only_through_states_that_wait_for_nothing() -> None:
    assert names(REPLICA_TRANSITIONS) == pairs(LEGAL_REPLICA) | pairs(IN_ONE_EVENT_REPLICA)
    assert names(PARTITION_TRANSITIONS) == pairs(LEGAL_PARTITION) | pairs(IN_ONE_EVENT_PARTITION)


@pytest.mark.parametrize(("origin", "target"), [*product(ReplicaState, ReplicaState)])
def test_a_replica_makes_exactly_the_legal_transitions(origin: ReplicaState, target: ReplicaState) -> None:
    is_legal = (origin.name, target.name) in pairs(LEGAL_REPLICA)
    assert transition(origin, target) == (target if is_legal else origin)


def batch_with(*partitions: Partition) -> Batch:
    serving = {b: Broker(b, 1, "i", BrokerState.active, None, (), (), 0) for b in (1, 2)}
    cluster, topics = replace(first_states(1)[0].cluster, brokers=serving), first_states(1)[0].topics
    topic = Topic("t", "id", TopicState.created, {}, partitions)
    return Batch(State(cluster, topics.changed({"t": topic})), Policy(), {})


def partition_in(state: PartitionState, number: int = 0) -> Partition:
    leader = 1 if state == PartitionState.OnlinePartition else NO_LEADER
    epoch = -1 if state == PartitionState.NewPartition else 5
    isr = () if state == PartitionState.NewPartition else (1,)
    return Partition(number, state, (1, 2), (ONLINE, ONLINE), isr, leader, epoch, epoch)


@pytest.mark.parametrize(("origin", "target"), [*product(PartitionState, PartitionState)])
def test_a_partition_makes_exactly_the_legal_transitions(origin: PartitionState, target: PartitionState) -> None:
    """A refused transition is reported and leaves the partition as it is, and the next change works as usual."""
    before, neighbour = partition_in(origin), partition_in(PartitionState.OnlinePartition, 1)
    batch = batch_with(before, neighbour)
    topic = batch.state.topic("t")
    assert topic is not None
    leader, isr = (2, (2,)) if target == PartitionState.OnlinePartition else (NO_LEADER, before.isr)
    change = PartitionChange(state=target, leader=leader, isr=isr)
    after = commit_partition(batch, topic, before, change, Reason.CONFIG_CHANGED)
    is_legal = (origin, target) in PARTITION_TRANSITIONS or origin == target
    assert after.state == (target if is_legal else origin)
    rejected = [decision for decision in decisions_of(batch.recorder.said) if isinstance(decision, Rejected)]
    if is_legal:
        assert rejected == []
    else:
        assert (after, len(decisions_of(batch.recorder.said))) == (before, 1)
        assert f"does not go from {origin.name} to {target.name}" in rejected[0].message
        assert (rejected[0].reason, rejected[0].partition) == (Reason.INVARIANT_BROKEN, 0)
    commit_partition(batch, topic, neighbour, PartitionChange(leader=2, isr=(2,)), Reason.CONFIG_CHANGED)
    assert [
        d.leader for d in decisions_of(batch.recorder.said) if isinstance(d, LeaderAndIsr) and d.partition == 1
    ] == [2]


@pytest.mark.parametrize(("origin", "target"), [*product(ReplicaState, ReplicaState)])
def test_a_change_with_an_illegal_replica_transition_is_withheld_whole(
    origin: ReplicaState, target: ReplicaState
) -> None:
    """As above, for one of two replicas: the whole change is withheld, or none of it."""
    before = Partition(0, PartitionState.OnlinePartition, (1, 2), (ONLINE, origin), (1,), 1, 5, 5)
    batch = batch_with(before)
    topic = batch.state.topic("t")
    assert topic is not None
    change = PartitionChange(replica_states=(ONLINE, target))
    after = commit_partition(batch, topic, before, change, Reason.CONFIG_CHANGED)
    is_legal = (origin, target) in REPLICA_TRANSITIONS or origin == target
    assert after.replica_states == (ONLINE, target if is_legal else origin)
    assert [type(decision) for decision in decisions_of(batch.recorder.said)] == ([] if is_legal else [Rejected])
