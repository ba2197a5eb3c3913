"""Any brokers die at once while a small partition is moved and a replica of an earlier move is still to be deleted."""

from collections.abc import Iterator
from itertools import chain, combinations, permutations

import pytest
from msgspec.structs import replace

from controller_logic.apply import apply
from controller_logic.availability import brokers_failed
from controller_logic.batch import Batch
from controller_logic.broker_sets import BrokerSets
from controller_logic.commit_cluster import commit_broker
from controller_logic.reassignment import change_to_begin, change_to_complete
from controller_logic.replay import first_states
from state.alike import decisions_of
from state.broker import Broker, BrokerState
from state.canonical import parts_clash
from state.cluster import State
from state.decisions import Rejected, StopReplica
from state.ids import NO_LEADER
from state.part import part_of
from state.partition import Partition, PartitionState, RemovedReplica, ReplicaState, Topic, TopicState
from state.policy import Policy

Ids = tuple[int, ...]
ALL = (1, 2, 3, 4)
LATE = 5
SERVING = {b: Broker(b, 1, "i", BrokerState.active, None, (), (), 0) for b in (*ALL, LATE)}
UP = BrokerSets(frozenset(SERVING), frozenset(SERVING), frozenset(), frozenset(SERVING), frozenset(), frozenset())
TO_DELETE = (RemovedReplica(LATE, 3, ReplicaState.ReplicaDeletionStarted),)


def subsets(ids: Ids, least: int = 0) -> Iterator[Ids]:
    return chain.from_iterable(combinations(ids, size) for size in range(least, len(ids) + 1))


def batch_with(partition: Partition) -> Batch:
    first = first_states(1)[0]
    topics = first.topics.changed({"t": Topic("t", "id", TopicState.created, {}, (partition,))})
    return Batch(State(replace(first.cluster, brokers=SERVING), topics), Policy(), {})


def moves(size: int) -> Iterator[Partition]:
    """Return every unfinished move of ``size`` replicas to one or two, at each stage."""
    origin = ALL[:size]
    online = (ReplicaState.OnlineReplica,) * size
    for isr in subsets(origin, 1):
        before = Partition(0, PartitionState.OnlinePartition, origin, online, isr, isr[-1], 5, 8, removed=TO_DELETE)
        for target in chain(permutations(ALL, 1), permutations(ALL, 2)):
            change = change_to_begin(before, target, UP, unclean_allowed=False)
            assert change is not None
            for joined in subsets(tuple(b for b in target if b not in isr)):
                asked = replace(change, isr=(*isr, *joined))
                moving = apply(before, asked)
                if moving.is_reassigning and change_to_complete(before, asked, UP, 1) is None:
                    yield moving


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_remaining_isr_member_leads_and_each_decision_is_made_once(size: int) -> None:
    for before in moves(size):
        for failed in subsets((*ALL, LATE), 1):
            batch = batch_with(before)
            for broker in failed:
                commit_broker(batch, replace(SERVING[broker], state=BrokerState.fenced))
            brokers_failed(batch, frozenset(failed))
            check(before, batch, set(failed))


def check(before: Partition, batch: Batch, failed: set[int]) -> None:
    topic = batch.state.topic("t")
    assert topic is not None
    after = topic.partitions[0]
    assert not parts_clash(map(part_of, decisions_of(batch.recorder.said)))
    assert not [d for d in decisions_of(batch.recorder.said) if isinstance(d, Rejected)]
    left = set(before.isr) - failed
    if left:
        assert after.leader in after.isr
        assert set(after.isr) <= left
    else:
        assert (after.leader, len(after.isr), after.removed) == (NO_LEADER, 1, held_up(before, failed))
    told = {broker for d in decisions_of(batch.recorder.said) if isinstance(d, StopReplica) for broker in d.to}
    assert not told & (failed | set(after.replicas))
    assert [e for e in after.removed if e.broker == LATE] == list(held_up(before, failed))


def held_up(before: Partition, failed: set[int]) -> tuple[RemovedReplica, ...]:
    state = ReplicaState.ReplicaDeletionIneligible
    return tuple(replace(entry, state=state) if entry.broker in failed else entry for entry in before.removed)
