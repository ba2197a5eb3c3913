"""Checks of one record of a partition, and of two successive ones (A8 to A14, B1 to B4)."""

from collections.abc import Iterator, Sequence

from state.decisions import LeaderAndIsr
from state.ids import NO_LEADER

Wrong = tuple[str, str]


def shape_of(now: LeaderAndIsr) -> Iterator[Wrong]:
    """List the invariants that a record violates by itself, and how."""
    isr, replicas, adding, removing = now.isr, now.replicas, now.adding_replicas, now.removing_replicas
    if not set(isr) <= set(replicas) or len(set(isr)) != len(isr):
        yield "A8", f"the ISR {isr} of the replicas {replicas}"
    if now.leader != NO_LEADER and now.leader not in isr:
        yield "A10", f"leader {now.leader} is not in the ISR {isr}"
    if not {*adding, *removing} <= set(replicas) or set(adding) & set(removing):
        yield "A12", f"adding {adding} and removing {removing} of the replicas {replicas}"
    if removing and set(replicas[-len(removing) :]) != set(removing):
        yield "A12", f"the target is no prefix of {replicas}: {removing} are removed"
    if now.leader != NO_LEADER and now.leader not in replicas:
        yield "A12", f"leader {now.leader} is not one of the replicas {replicas}"
    if not set(now.elr or ()) <= set(replicas) or not set(now.elr or ()).isdisjoint(isr):
        yield "A9", f"eligible are {now.elr} of the replicas {replicas}, with the ISR {isr}"
    if now.leader_recovery_state == "RECOVERING" and len(isr) > 1:
        yield "A13", f"{now.leader} recovers, and is not alone in the ISR {isr}"
    if len(set(replicas)) != len(replicas):
        yield "A14", f"a broker is twice among the replicas {replicas}"


def step_of(before: LeaderAndIsr, now: LeaderAndIsr, joined: Sequence[int] = ()) -> Iterator[Wrong]:
    """List the invariants that a record violates after its predecessor, and how.

    ``joined`` is the ISR that the leader asked for, if any. A replica that joins by it may lead at once if a
    reassignment ends with it.
    """
    leader_step = now.leader_epoch - before.leader_epoch
    partition_step = now.partition_epoch - before.partition_epoch
    if partition_step not in (0, 1) or leader_step < 0:
        yield "B1", f"from {before.leader_epoch}.{before.partition_epoch} to {now}"
    if leader_step > partition_step:
        yield "B2", f"the leader epoch grew without the partition epoch: {now}"
    if now.leader != before.leader and leader_step == 0:
        yield "B4", f"{before.leader} -> {now.leader} in epoch {now.leader_epoch}"
    if set(now.isr) != set(before.isr) and partition_step == 0:
        yield "B1", f"another ISR in one partition epoch: {before.isr} -> {now.isr}"
    recovering = (before.leader_recovery_state, now.leader_recovery_state)
    if recovering == ("RECOVERED", "RECOVERING") and not now.unclean:
        yield "A13", "it recovers after an election that was not unclean"
    elected = now.leader not in (before.leader, NO_LEADER)
    if now.unclean != (elected and now.leader not in (*before.isr, *joined, *(before.elr or ()))):
        yield "E1", f"{before.leader} -> {now.leader}, ISR was {before.isr}, said to be unclean: {now.unclean}"
