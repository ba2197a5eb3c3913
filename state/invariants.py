"""What must hold of every partition, whatever happened to it.

Each broken rule is named by what should be true. ``step`` asks after each change, in production
too: a change that breaks a rule is not made.
"""

from isrflow.state.ids import NO_LEADER
from isrflow.state.partition import LeaderRecoveryState, Partition, PartitionState


def broken_rules(before: Partition, after: Partition) -> list[str]:
    """List the rules that ``after``, made from ``before``, does not keep; empty when all hold."""
    isr, replicas, leader = after.isr, after.replicas, after.leader
    broken: list[str] = []
    for member in isr:
        if member not in replicas:
            broken.append("every member of the ISR is an assigned replica")
            break
    if leader != NO_LEADER and leader not in isr:
        broken.append("the leader is in the ISR")
    if not isr and after.partition_epoch >= 0:
        broken.append("the ISR is not empty once a leader was elected")
    if len(isr) != len(set(isr)) or len(replicas) != len(set(replicas)):
        broken.append("the members of the ISR, and the replicas, are distinct")
    if (leader != NO_LEADER) != (after.state == PartitionState.OnlinePartition):
        broken.append("a partition is online exactly when it has a leader")
    if after.leader_recovery_state == LeaderRecoveryState.RECOVERING and len(isr) > 1:
        broken.append("a leader that is recovering is alone in the ISR")
    if after.adding_replicas or after.removing_replicas:
        broken += _broken_reassignment(after)
    if len(after.replica_states) != len(replicas):
        broken.append("every replica has a state")
    return broken + _broken_epochs(before, after)


def _broken_reassignment(after: Partition) -> list[str]:
    adding, removing = set(after.adding_replicas), set(after.removing_replicas)
    broken = []
    if not adding | removing <= set(after.replicas):
        broken.append("replicas that are added or removed are assigned")
    if adding & removing:
        broken.append("no replica is both added and removed")
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
    if after.high_watermark_epoch == before.high_watermark_epoch and after.high_watermark < before.high_watermark:
        broken.append("the high watermark does not go back within a leader epoch")
    return broken
