"""Laws that hold for the state after every event."""

from collections import Counter
from collections.abc import Mapping

from msgspec import UNSET
from msgspec.structs import replace

from state.canonical import parts_clash
from state.cluster import Outcome, State, Totals, counted
from state.decisions import AnyDecision, LeaderAndIsr, TopicDecision
from state.ids import NO_EPOCH, NO_LEADER
from state.part import part_of
from state.partition import Partition, PartitionState, ReplicaState, Topic, TopicState
from state.policy import Policy, laid_over
from state.reason import Reason
from state.stored import codec

_NONE: Mapping[str, str] = {}


def check_laws(before: State, outcome: Outcome, policy: Policy, overrides: Mapping[str, str] = _NONE) -> None:
    """Check that an event has led from one lawful state to another."""
    after = outcome.state
    if after.cluster.shadow is not None:
        # Another controller decides. What it does against the laws is a matter for the audit.
        check_observed(outcome, policy, overrides)
        return
    for name in after.topics.names():
        topic, former = after.topics.get(name), before.topics.get(name)
        assert topic is not None
        check_deletion(after, topic)
        for partition in topic.partitions:
            same = former is not None and former.topic_id == topic.topic_id
            held = former.partitions[partition.partition : partition.partition + 1] if former and same else ()
            if topic.state == TopicState.created:
                check_partition(after, partition)
                decisions = [d for d in outcome.decisions if getattr(d, "topic", None) == name]
                check_progress(outcome.state, partition, decisions)
                check_addressees(after, held[0] if held else None, partition, decisions)
                check_passed_over(after, held[0] if held else None, partition, decisions)
            if held:
                check_change(held[0], partition, outcome.decisions)
    assert not parts_clash(map(part_of, outcome.decisions)), "two decisions in one place"
    check_totals(after, policy, overrides)
    check_in_force(after, policy, overrides)
    check_bytes(outcome)


def check_observed(outcome: Outcome, policy: Policy, overrides: Mapping[str, str]) -> None:
    """Check what holds for the state of an observed cluster, whatever its controller does."""
    live = {b.broker for b in outcome.state.cluster.brokers.values() if b.is_live}
    for name in outcome.state.topics.names():
        topic = outcome.state.topics.get(name)
        assert topic is not None
        for partition in topic.partitions:
            assert (partition.state == PartitionState.OnlinePartition) == (partition.leader != NO_LEADER)
            for replica, replica_state in zip(partition.replicas, partition.replica_states, strict=True):
                assert replica in live or replica_state == ReplicaState.OfflineReplica
    check_totals(outcome.state, policy, overrides)
    check_bytes(outcome)


def policy_in_force(state: State, policy: Policy, overrides: Mapping[str, str] = _NONE) -> Policy:
    """Return the settings that rules read in ``state``: the layers over ``policy``, the lowest first."""
    policy = replace(policy, metadata_max_idle_interval_ms=0)
    static = {} if state.cluster.shadow is None else state.cluster.shadow.static_settings
    for layer in (state.cluster.settings, static, state.cluster.config, overrides):
        policy = laid_over(policy, layer)
    return policy


def check_bytes(outcome: Outcome) -> None:
    """Check that the state is read back unchanged from its bytes, so each field has the type that it declares."""
    cluster = outcome.state.cluster
    assert codec.decode_cluster(codec.encode_cluster(cluster)) == cluster
    topics = [topic for topic in outcome.changes.values() if topic is not None]
    assert codec.joined_topics([codec.encode_topics(topics)]) == topics


def check_partition(state: State, partition: Partition) -> None:
    active = {b.broker for b in state.cluster.brokers.values() if b.is_active}
    live = {b.broker for b in state.cluster.brokers.values() if b.is_live}
    assert set(partition.isr) <= set(partition.replicas)
    assert len(set(partition.isr)) == len(partition.isr)
    check_eligible(partition)
    assert partition.leader == NO_LEADER or partition.leader in partition.isr
    assert partition.leader == NO_LEADER or partition.leader in live
    assert len(partition.isr) == 1 or all(b in active or b == partition.leader for b in partition.isr)
    assert (partition.state == PartitionState.OnlinePartition) == (partition.leader != NO_LEADER)
    assert (partition.state == PartitionState.NewPartition) == (partition.leader_epoch == NO_EPOCH)
    target = [r for r in partition.replicas if r not in partition.removing_replicas]
    assert set(partition.adding_replicas) <= set(target)
    assert tuple(target) == partition.replicas[: len(target)], "the target comes first"
    assert not partition.is_reassigning or not set(target) <= set(partition.isr), "it could be complete"
    assert set(partition.lost_logs) <= set(partition.replicas)
    assert not partition.lost_logs or partition.leader == NO_LEADER, "who follows a leader needs no log"
    assert not {entry.broker for entry in partition.removed} & set(partition.replicas)
    for entry in partition.removed:
        serves = entry.state == ReplicaState.ReplicaDeletionStarted
        assert serves or entry.state == ReplicaState.ReplicaDeletionIneligible
        assert entry.broker in live or not serves
    for replica, replica_state in zip(partition.replicas, partition.replica_states, strict=True):
        assert replica in live or replica_state == ReplicaState.OfflineReplica
    if partition.leader == NO_LEADER:
        ready = [r for r, s in zip(partition.replicas, partition.replica_states, strict=True) if r in active and s < 3]
        assert not set(ready) & {*partition.in_sync, *partition.elr}, "a replica with all records could lead"
        assert not ready or partition.leader_epoch != NO_EPOCH, "a new partition could have a leader"


def check_eligible(partition: Partition) -> None:
    elr, last = set(partition.elr), partition.last_known_elr
    assert partition.isr or elr or last or partition.leader_epoch == NO_EPOCH, "nobody is known to have the records"
    assert elr <= set(partition.replicas)
    assert len(elr) == len(partition.elr)
    assert not elr & {*partition.isr, *partition.lost_logs}
    assert set(last) <= set(partition.replicas)
    assert len(last) <= 1
    assert not last or partition.leader == NO_LEADER
    former = set(partition.former_members)
    assert former <= set(partition.replicas) - {*partition.isr, *elr}
    assert {log.broker for log in partition.reported_logs} <= set(partition.replicas)
    assert not partition.reported_logs or partition.leader == NO_LEADER, "the log of who follows a leader changes"


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
    assert all(r in state.cluster.brokers for r in ineligible), "who is unregistered is not waited for"
    assert all(p.leader == NO_LEADER and p.state == PartitionState.NonExistentPartition for p in topic.partitions)


def check_change(before: Partition, after: Partition, decisions: list[AnyDecision]) -> None:
    assert after.partition_epoch - before.partition_epoch in (0, 1)
    assert 0 <= after.leader_epoch - before.leader_epoch <= after.partition_epoch - before.partition_epoch
    if after.leader != before.leader:
        assert after.leader_epoch == before.leader_epoch + 1
    if (after.isr, after.leader, after.elr) != (before.isr, before.leader, before.elr):
        assert after.partition_epoch == before.partition_epoch + 1
    is_new_leader = after.leader not in (before.leader, NO_LEADER, *before.isr) and not before.is_reassigning
    if is_new_leader and after.leader in before.elr:
        assert after.isr == (after.leader,), "an eligible leader is alone in the ISR"
    if after.high_watermark < before.high_watermark:
        leaders_end = after.log_end_offsets[after.replicas.index(after.leader)]
        lost = before.high_watermark_epoch != after.leader_epoch and leaders_end < before.high_watermark
        unclean = before.high_watermark_epoch == NO_EPOCH
        assert unclean or lost, "the high watermark goes back only under a new leader that has less"
    if after.high_watermark != before.high_watermark:
        ends = [after.log_end_offsets[after.replicas.index(member)] for member in after.isr]
        assert after.high_watermark <= min(ends)
    if after.is_reassigning and not before.is_reassigning:
        assert any(isinstance(d, LeaderAndIsr) and d.reason == "REASSIGNMENT" for d in decisions)


def check_progress(state: State, partition: Partition, decisions: list[AnyDecision]) -> None:
    """Check that completed epochs were received, and each addressed broker that reports owes the decision's epoch."""
    received = partition.received_epochs or partition.completed_epochs
    for epochs in (partition.requested_epochs, partition.received_epochs, partition.completed_epochs):
        assert len(epochs) in (0, len(partition.replicas))
        assert all(NO_EPOCH <= epoch <= partition.leader_epoch for epoch in epochs)
    assert all(done <= got for done, got in zip(partition.completed_epochs, received, strict=False))
    requested = dict(zip(partition.replicas, partition.requested_epochs, strict=False))
    for decision in decisions:
        if isinstance(decision, LeaderAndIsr) and decision.partition == partition.partition:
            addressed = [broker for broker in decision.to if not _is_kraft(state, broker)]
            assert all(requested[broker] >= decision.leader_epoch for broker in addressed)


def check_addressees(state: State, before: Partition | None, after: Partition, decisions: list[AnyDecision]) -> None:
    """Check that only brokers with an online replica are addressed when a leaderless partition gets a leader."""
    held = dict(zip(after.replicas, after.replica_states, strict=True))
    for decision in decisions:
        if isinstance(decision, LeaderAndIsr) and decision.partition == after.partition:
            assert set(decision.to) <= set(state.cluster.brokers), "no other broker is addressed"
            was_led = before is not None and before.leader != NO_LEADER
            if not was_led and decision.leader != NO_LEADER:
                online = {b for b, s in held.items() if s != ReplicaState.OfflineReplica}
                assert set(decision.to) <= online & {b for b, known in state.cluster.brokers.items() if known.is_active}


def check_passed_over(state: State, before: Partition | None, after: Partition, decisions: list[AnyDecision]) -> None:
    """Check that an election names an obstacle of each replica before the leader, or of all if no clean leader is."""
    if any(isinstance(one, TopicDecision) and one.reason == Reason.TOPIC_ADOPTED for one in decisions):
        # An election in it replaces a leader that the engine never knew.
        return
    for decision in decisions:
        if not isinstance(decision, LeaderAndIsr) or decision.partition != after.partition:
            continue
        passed_over = [] if decision.passed_over is UNSET else list(decision.passed_over)
        is_election = decision.leader != (before.leader if before else NO_LEADER)
        expected: list[int] = []
        if is_election:
            is_clean = decision.leader != NO_LEADER and not decision.unclean
            expected = list(after.replicas[: after.replicas.index(decision.leader)] if is_clean else after.replicas)
        elif decision.reason == Reason.LOG_LEFT_BEHIND:
            expected = list(after.replicas)
        assert passed_over == expected


def _is_kraft(state: State, broker: int) -> bool:
    held = state.cluster.brokers.get(broker)
    return held is not None and held.is_kraft


def check_in_force(state: State, policy: Policy, overrides: Mapping[str, str]) -> None:
    """Check that brokers behind gateways know the settings in force, if there is a metadata log."""
    cluster = state.cluster
    if cluster.quorum.is_kraft:
        policy = policy_in_force(state, policy, overrides)
        expected_settings = {
            "min.insync.replicas": str(policy.min_insync_replicas),
            "unclean.leader.election.enable": "true" if policy.unclean_leader_election_enable else "false",
        }
        version = "eligible.leader.replicas.version"
        if policy.eligible_leader_replicas_version or version in cluster.in_force:
            expected_settings[version] = str(policy.eligible_leader_replicas_version)
        assert cluster.in_force == expected_settings


def check_totals(state: State, policy: Policy, overrides: Mapping[str, str]) -> None:
    """Check the running totals against a full count."""
    cluster, policy = state.cluster, policy_in_force(state, policy, overrides)
    expected, backlog = Totals(), Counter[int]()
    for name in state.topics.names():
        topic = state.topics.get(name)
        assert topic is not None
        if topic.state != TopicState.created:
            continue
        min_isr = laid_over(policy, topic.config).min_insync_replicas
        expected += Totals(1)
        for partition in topic.partitions:
            expected += Totals(0, *counted(partition, min_isr))
            backlog.update(partition.backlog)
    assert cluster.totals == expected
    assert cluster.backlog == backlog
