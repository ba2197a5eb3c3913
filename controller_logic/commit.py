"""Commit what a rule decided about a partition.

The problem: a change to one partition may end a reassignment, raises epochs, may break an invariant, and must be
counted and recorded. Each rule would have to think of all that. The insight, from Kafka's KRaft controller, is to keep
deciding and changing apart: a rule reads the state and decides on a change, which is a value. Every change then goes
down one pipeline:

    change ─► settle ─► apply ─► check ─► count ─► record ─► the partition as it stands
                │         │        │        │         │
                │         │        │        │         └ a decision for the brokers, with its reason
                │         │        │        └ totals and backlog
                │         │        └ a change that breaks an invariant is withheld and reported
                │         └ epochs go up here, and no rule raises one
                └ if the change completes a reassignment, both are one change

Settling comes first because it replaces the change. A replica that joins the ISR may be the last one that a
reassignment waits for. If that were two changes, the leader epoch would go up twice, and between the two a failure
could end the reassignment under a leader that is gone. Sometimes a reassignment can end although the partition itself
did not change, for example when a broker that it waited for goes down. ``recheck_reassignment`` checks that.

Checking comes before anything is kept, so a withheld change leaves no trace but its ``rejected`` decision.

Rejected: a working state on which every rule sets fields and appends decisions itself. Then no single place shows
whether a change was checked, counted and recorded.

Other values have pipelines of their own, with fewer steps: ``commit_reports`` for what replicas report of their logs,
``commit_topic`` and ``commit_cluster``. For partitions that are alike, ``commit_alike`` repeats what this pipeline did
to the first of them. Such a change is not checked again, because invariants depend on what is alike: on the places of
replicas, on their states, the ISR and the leader, and on how far epochs rise.
"""

from msgspec.structs import replace

from controller_logic.apply import apply
from controller_logic.batch import Batch
from controller_logic.candidates import passed_over
from controller_logic.eligible import eligible_after, former_members_after, last_known_after
from controller_logic.reassignment import change_to_complete
from controller_logic.replica_machine import online_replicas
from controller_logic.working_state import WorkingState
from controller_logic.working_topic import WorkingTopic
from state.change import PartitionChange
from state.directories import (
    NO_DIRECTORY,
    all_directories,
    changed_directories,
    directory_of,
    kept,
    with_new_replicas,
)
from state.ids import NO_EPOCH, NO_LEADER
from state.invariants import broken_rules
from state.log_directory import UNASSIGNED
from state.partition import Partition, ReplicaState
from state.reason import Reason

_DELETION_STARTED = ReplicaState.ReplicaDeletionStarted
_NOTHING_ELSE = PartitionChange()

Ids = tuple[int, ...]


def commit_partition(
    batch: Batch,
    topic: WorkingTopic,
    before: Partition,
    change: PartitionChange,
    reason: Reason,
    *,
    to: Ids | None = None,
) -> Partition:
    """Commit a change; return the resulting partition, which is ``before`` itself if the change is withheld.

    The decision goes to the brokers in ``to``, by default to every live replica.
    """
    if before.is_reassigning or change.replicas is not None:
        end = change_to_complete(before, change, batch.state.broker_sets, topic.min_isr)
        if end is not None:
            return _commit_settled(batch, topic, before, end, Reason.REASSIGNMENT, _to_target(before, to))
    return _commit_settled(batch, topic, before, change, reason, to)


def recheck_reassignment(batch: Batch, topic: WorkingTopic, before: Partition, *, to: Ids | None = None) -> Partition:
    """End a reassignment if it waits for nothing more; return the resulting partition."""
    if not before.is_reassigning:
        return before
    end = change_to_complete(before, _NOTHING_ELSE, batch.state.broker_sets, topic.min_isr)
    if end is None:
        return before
    return _commit_settled(batch, topic, before, end, Reason.REASSIGNMENT, _to_target(before, to))


def _to_target(before: Partition, to: Ids | None) -> Ids | None:
    return to and tuple([broker for broker in to if broker not in before.removing_replicas])


def _commit_settled(
    batch: Batch, topic: WorkingTopic, before: Partition, change: PartitionChange, reason: Reason, to: Ids | None
) -> Partition:
    state = batch.state
    # Apply
    if state.dirs_left and change.replicas is not None and change.directories is None:
        change = replace(change, directories=with_new_replicas(before, change.replicas, state.dirs_left))
    if not topic.is_deleting and (state.has_eligible_leaders or before.has_eligible or before.former_members):
        change = with_eligible(before, change, topic.min_isr if state.has_eligible_leaders else None)
    if to is None and change.leader is not None and before.leader == NO_LEADER:
        to = _online_after(state, before, change)
    after = apply(before, change, state.reporting if to is None else state.reporting.intersection(to))
    if before.lost_logs and not after.lost_logs:
        after = _with_new_logs(state, before, after)
    # Check
    broken = broken_rules(before, after, state.awaited, state.live)
    if broken:
        batch.recorder.say_withheld(topic, before, broken)
        return before
    # Keep and count
    topic.put(after)
    if state.recoveries_due and after.leader != NO_LEADER:
        state.recoveries_due.pop((topic.topic, after.partition), None)
    differs = after.partition_epoch != before.partition_epoch
    if differs or change.replicas is not None:
        state.totals.change(topic, before, after)
    if topic.deletion_waits and before.is_reassigning and not after.is_reassigning:
        state.deletions_due.add(topic.topic)
    # Record
    if differs:
        is_new = before.leader_epoch == NO_EPOCH
        addressed = _addressed(state, before, after, change, to)
        # A partition that is deleted loses its leader without an election.
        is_election = after.leader != before.leader and reason is not Reason.TOPIC_DELETED
        is_election |= reason is Reason.LOG_LEFT_BEHIND
        over = _passed_over(state, before, after, change) if is_election else None
        batch.recorder.say_leader_and_isr(
            topic,
            after,
            reason,
            to=addressed,
            is_new=is_new,
            unclean=change.unclean,
            passed_over=over,
            directories=_directories_told(state, before, after, change, is_new=is_new and after.leader != NO_LEADER),
            compared=change.compared,
        )
    if after.removed != before.removed:
        _tell_removed(batch, topic, before, after)
    return after


def _passed_over(state: WorkingState, before: Partition, after: Partition, change: PartitionChange) -> dict[int, str]:
    isr = before.isr if change.elected_from is None else change.elected_from
    isr = (*isr, *before.elr, *change.proven) if change.eligible else isr
    return passed_over(isr, after, state.brokers, unclean=change.unclean, lost_logs=before.lost_logs)


def _addressed(
    state: WorkingState, before: Partition, after: Partition, change: PartitionChange, to: Ids | None
) -> Ids:
    """List the replicas that must act on a change."""
    if after.leader_epoch == before.leader_epoch and not change.by_leader and change.directories is None:
        # Only who is eligible changed. The leader must know the partition epoch.
        return tuple(state.live.intersection((after.leader,)))
    return state.live_replicas(after) if to is None else to


def with_eligible(before: Partition, change: PartitionChange, min_isr: int | None) -> PartitionChange:
    """Add to a change who is eligible after it: no replica if the new leader may lack records, or without ``min_isr``.

    ``min_isr`` is None while partitions keep no eligible replicas.
    """
    if min_isr is None:
        return replace(change, elr=(), last_known_elr=(), former_members=())
    if change.by_leader and before.min_isr_read:
        min_isr = min(min_isr, before.min_isr_read)
    leader = before.leader if change.leader is None else change.leader
    isr = before.isr if change.isr is None else change.isr
    replicas = before.replicas if change.replicas is None else change.replicas
    unproven = replicas if change.unclean else change.unproven
    former = before.isr, (*before.elr, *change.proven) if change.proven else before.elr
    elr = eligible_after(*former, isr, replicas=replicas, min_isr=min_isr, unproven=unproven)
    members: Ids = ()
    if before.former_members or change.crashed:
        # Most partitions have none.
        crashed = () if change.unclean else change.crashed
        held = before.former_members, *former, isr, elr
        members = former_members_after(*held, replicas=replicas, min_isr=min_isr, unproven=unproven, crashed=crashed)
    return replace(
        change,
        elr=elr,
        former_members=members,
        last_known_elr=last_known_after(
            before.last_known_elr, before.leader, *former, leader=leader, isr=isr, replicas=replicas
        ),
    )


def _with_new_logs(state: WorkingState, before: Partition, after: Partition) -> Partition:
    """Forget where lost logs were. A broker with several directories has said where it made the new one."""
    single = [r for r in before.lost_logs if r not in state.brokers or not state.brokers[r].has_several_dirs]
    pairs = zip(after.replicas, all_directories(after), strict=True)
    directories = kept(tuple([NO_DIRECTORY if replica in single else held for replica, held in pairs]))
    return replace(after, directories=directories)


def _directories_told(
    state: WorkingState, before: Partition, after: Partition, change: PartitionChange, *, is_new: bool
) -> dict[int, str] | None:
    """Return the directories that brokers hear of: those of replicas that moved to another one, and of new replicas.

    Kafka's brokers hear that a new replica on a broker with several directories is in none yet. Without that, the
    broker makes no log for the replica after one of its directories has failed.
    """
    told = {} if change.directories is None else changed_directories(before, after)
    if state.dir_choosers and (is_new or change.replicas is not None):
        chosen_by = state.dir_choosers.intersection(after.replicas).difference(() if is_new else before.replicas)
        told |= {replica: UNASSIGNED for replica in sorted(chosen_by) if directory_of(after, replica) == NO_DIRECTORY}
    return told or None


def _online_after(state: WorkingState, before: Partition, change: PartitionChange) -> Ids:
    """List the replicas that are told when a partition without a leader gets one: the online ones.

    As in the classic controller, a replica that shuts down or has lost its log is not asked to follow.
    """
    replicas, states = change.replicas or before.replicas, change.replica_states or before.replica_states
    return online_replicas(replicas, states, state.active)


def _tell_removed(batch: Batch, topic: WorkingTopic, before: Partition, after: Partition) -> None:
    """Tell brokers to delete the replicas that this change removed."""
    to = tuple([e.broker for e in after.removed if e.state == _DELETION_STARTED and e not in before.removed])
    if to:
        reason, epoch = Reason.REASSIGNMENT, after.leader_epoch
        batch.recorder.say_stop_replica(topic, after, reason, leader_epoch=epoch, delete=True, to=to)


def tell_leader_and_isr(batch: Batch, topic: WorkingTopic, partition: Partition, reason: Reason, *, to: Ids) -> None:
    """Record a partition as it stands, although it did not change, because the brokers in ``to`` must hear of it."""
    over = None
    if reason is Reason.LOG_LEFT_BEHIND:
        over = passed_over(partition.isr, partition, batch.state.brokers, unclean=False, lost_logs=partition.lost_logs)
    batch.recorder.say_leader_and_isr(topic, partition, reason, to=to, passed_over=over)


def tell_stop_replica(
    batch: Batch,
    topic: WorkingTopic,
    partition: Partition,
    reason: Reason,
    *,
    leader_epoch: int,
    delete: bool,
    to: Ids,
) -> None:
    """Record that brokers must stop following a partition, whatever became of it in the event at hand."""
    batch.recorder.say_stop_replica(topic, partition, reason, leader_epoch=leader_epoch, delete=delete, to=to)
