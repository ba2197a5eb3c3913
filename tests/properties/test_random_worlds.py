"""Whatever comes, what must hold does, and neither cuts nor shards show in the decisions."""

from collections import Counter

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from isrflow.controller_logic.log import decide
from isrflow.state.cluster import State, Totals, counted
from isrflow.state.decisions import Answer, AnyDecision, HighWatermark, LeaderAndIsr, Rejected, StopReplica
from isrflow.state.event_text import decode
from isrflow.state.events import Malformed
from isrflow.state.ids import NO_EPOCH, NO_LEADER
from isrflow.state.partition import Partition, PartitionState, ReplicaState, Topic, TopicState
from isrflow.state.policy import Policy, laid_over
from tests.properties.random_logs import Draw, draws, walk

POLICY = Policy(num_partitions=2, leader_imbalance_check_interval_seconds=1)
ALWAYS_ANSWERED = {
    "broker_register",
    "controlled_shutdown",
    "alter_isr",
    "create_topic",
    "delete_topic",
    "create_partitions",
    "alter_reassignment",
    "elect_leaders",
    "alter_config",
}


@settings(max_examples=600, deadline=None)
@given(draws(max_size=80))
def test_what_must_hold_holds_after_every_event(drawn: list[Draw]) -> None:
    for before, raw, outcome in walk(drawn, POLICY):
        after = outcome.state
        for name in after.topics.names():
            topic, former = after.topics.get(name), before.topics.get(name)
            assert topic is not None
            check_deletion(after, topic)
            for partition in topic.partitions:
                same = former is not None and former.topic_id == topic.topic_id
                held = former.partitions[partition.partition : partition.partition + 1] if former and same else ()
                if topic.state == TopicState.created:
                    check_partition(after, partition)
                if held:
                    check_change(held[0], partition, outcome.decisions)
        check_totals(after)
        check_said(raw, outcome.decisions)


def check_partition(state: State, partition: Partition) -> None:
    active = {b.broker for b in state.cluster.brokers.values() if b.is_active}
    live = {b.broker for b in state.cluster.brokers.values() if b.is_live}
    assert set(partition.isr) <= set(partition.replicas)
    assert len(set(partition.isr)) == len(partition.isr)
    assert partition.isr or partition.leader_epoch == NO_EPOCH
    assert partition.leader == NO_LEADER or partition.leader in partition.isr
    assert partition.leader == NO_LEADER or partition.leader in live
    assert len(partition.isr) == 1 or all(b in active or b == partition.leader for b in partition.isr)
    assert (partition.state == PartitionState.OnlinePartition) == (partition.leader != NO_LEADER)
    assert (partition.state == PartitionState.NewPartition) == (partition.leader_epoch == NO_EPOCH)
    target = [r for r in partition.replicas if r not in partition.removing_replicas]
    assert set(partition.adding_replicas) <= set(target)
    assert tuple(target) == partition.replicas[: len(target)], "the target comes first"
    assert not partition.is_reassigning or not set(target) <= set(partition.isr), "it could be complete"
    assert not {entry.broker for entry in partition.removed} & set(partition.replicas)
    for entry in partition.removed:
        serves = entry.state == ReplicaState.ReplicaDeletionStarted
        assert serves or entry.state == ReplicaState.ReplicaDeletionIneligible
        assert entry.broker in live or not serves
    for replica, replica_state in zip(partition.replicas, partition.replica_states, strict=True):
        assert replica in live or replica_state == ReplicaState.OfflineReplica
    if partition.leader == NO_LEADER:
        ready = [r for r, s in zip(partition.replicas, partition.replica_states, strict=True) if r in active and s < 3]
        assert not set(ready) & set(partition.isr), "an ISR member could lead"
        assert not ready or partition.leader_epoch != NO_EPOCH, "a new partition could have a leader"


def check_deletion(state: State, topic: Topic) -> None:
    live = {b.broker for b in state.cluster.brokers.values() if b.is_live}
    held = [(r, s) for p in topic.partitions for r, s in zip(p.replicas, p.replica_states, strict=True)]
    if topic.state == TopicState.created:
        assert max(s for _, s in held) <= ReplicaState.OfflineReplica
        return
    assert topic.state != TopicState.deleted
    assert min(s for _, s in held) >= ReplicaState.ReplicaDeletionStarted
    ineligible = [r for r, s in held if s == ReplicaState.ReplicaDeletionIneligible]
    assert bool(ineligible) == (topic.state == TopicState.ineligible)
    assert all(r in live for r, s in held if s == ReplicaState.ReplicaDeletionStarted)
    assert all(p.leader == NO_LEADER and p.state == PartitionState.NonExistentPartition for p in topic.partitions)


def check_change(before: Partition, after: Partition, decisions: list[AnyDecision]) -> None:
    assert after.partition_epoch - before.partition_epoch in (0, 1)
    assert 0 <= after.leader_epoch - before.leader_epoch <= after.partition_epoch - before.partition_epoch
    if after.leader != before.leader:
        assert after.leader_epoch == before.leader_epoch + 1
    if (after.isr, after.leader) != (before.isr, before.leader):
        assert after.partition_epoch == before.partition_epoch + 1
    if after.high_watermark < before.high_watermark:
        leaders_end = after.log_end_offsets[after.replicas.index(after.leader)]
        lost = before.high_watermark_epoch != after.leader_epoch and leaders_end < before.high_watermark
        unclean = before.high_watermark_epoch == NO_EPOCH
        assert unclean or lost, "the high watermark goes back only under a new leader that has less"
    if after.high_watermark != before.high_watermark:
        ends = [after.log_end_offsets[after.replicas.index(member)] for member in after.isr]
        assert after.high_watermark == min(ends)
    if after.is_reassigning and not before.is_reassigning:
        assert any(isinstance(d, LeaderAndIsr) and d.reason == "REASSIGNMENT" for d in decisions)


def check_totals(state: State) -> None:
    cluster = state.cluster
    policy = laid_over(laid_over(POLICY, cluster.settings), cluster.config)
    expected = Totals()
    for name in state.topics.names():
        topic = state.topics.get(name)
        assert topic is not None
        if topic.state != TopicState.created:
            continue
        min_isr = laid_over(policy, topic.config).min_insync_replicas
        expected += Totals(1)
        for partition in topic.partitions:
            expected += Totals(0, *counted(partition, min_isr))
    assert cluster.totals == expected


def check_said(raw: bytes, decisions: list[AnyDecision]) -> None:
    event = decode(raw)
    answers = [d for d in decisions if isinstance(d, Answer)]
    rejected = [d for d in decisions if isinstance(d, Rejected)]
    request_id = getattr(event, "request_id", None)
    assert len(answers) <= 1
    assert not any(d.reason == "INVARIANT_BROKEN" for d in rejected)
    assert not answers or answers[0].request_id == request_id
    if request_id is not None or (not isinstance(event, Malformed) and event.__struct_config__.tag in ALWAYS_ANSWERED):
        assert answers or rejected
    if request_id is not None:
        assert answers
    for kind in (LeaderAndIsr, StopReplica, HighWatermark):
        said = Counter((d.topic, d.partition) for d in decisions if isinstance(d, kind))
        assert all(count == 1 for count in said.values()), f"two {kind.__name__} of one partition in one event"


@settings(max_examples=60, deadline=None)
@given(draws(max_size=80), st.lists(st.integers(1, 30), min_size=1, max_size=6))
def test_neither_cuts_nor_shards_show(drawn: list[Draw], batch_sizes: list[int]) -> None:
    entries = list(enumerate((raw for _, raw, _ in walk(drawn, POLICY)), start=1))
    whole = decide(entries, POLICY)
    for shards in (1, 3, 16):
        cut = decide(entries, POLICY, shards=shards, batch_sizes=batch_sizes)
        assert cut.decisions == whole.decisions
        assert msgspec.json.encode(cut.view()) == msgspec.json.encode(whole.view())
    assert len({(seq, index) for seq, index, _ in whole.decisions}) == len(whole.decisions)


@settings(max_examples=30, deadline=None)
@given(draws(max_size=60), st.integers(0, 60))
def test_what_was_taken_in_is_passed_over(drawn: list[Draw], again_from: int) -> None:
    entries = list(enumerate((raw for _, raw, _ in walk(drawn, POLICY)), start=1))
    repeated = [*entries, *entries[again_from:]]
    assert decide(repeated, POLICY, batch_sizes=(7,)).decisions == decide(entries, POLICY).decisions
