"""Add a change to a partition: the one place where epochs go up."""

from isrflow.state.change import PartitionChange
from isrflow.state.ids import NO_EPOCH, NO_LEADER, UNKNOWN_OFFSET
from isrflow.state.partition import Partition


def apply(before: Partition, change: PartitionChange) -> Partition:
    """Return ``before`` with ``change`` made.

    The partition epoch goes up by one when leader, ISR, recovery state or assignment differ after
    it, and the leader epoch with it unless the leader itself asked (classic controller:
    ``LeaderAndIsr.newLeaderAndIsr``; KIP-497). Replica states alone raise nothing, nor does anything
    before the first leader. After an unclean election the high watermark belongs to no epoch, so that
    it may go back.
    """
    leader = before.leader if change.leader is None else change.leader
    isr = before.isr if change.isr is None else change.isr
    recovery = before.leader_recovery_state if change.leader_recovery_state is None else change.leader_recovery_state
    replicas = before.replicas if change.replicas is None else change.replicas
    adding = before.adding_replicas if change.adding_replicas is None else change.adding_replicas
    removing = before.removing_replicas if change.removing_replicas is None else change.removing_replicas
    differs = (
        leader != before.leader
        or isr != before.isr
        or recovery != before.leader_recovery_state
        or replicas != before.replicas
        or adding != before.adding_replicas
        or removing != before.removing_replicas
    )
    if leader == NO_LEADER and before.leader_epoch == NO_EPOCH:
        differs = False
    offsets, epochs, completed = before.log_end_offsets, before.offset_epochs, before.completed_epochs
    if replicas != before.replicas:
        offsets = _in_order(replicas, before.replicas, offsets, UNKNOWN_OFFSET)
        epochs = _in_order(replicas, before.replicas, epochs, NO_EPOCH)
        completed = _in_order(replicas, before.replicas, completed, NO_EPOCH)
    return Partition(
        before.partition,
        before.state if change.state is None else change.state,
        replicas,
        before.replica_states if change.replica_states is None else change.replica_states,
        isr,
        leader,
        before.leader_epoch + (differs and not change.by_leader),
        before.partition_epoch + differs,
        recovery,
        adding,
        removing,
        before.high_watermark,
        NO_EPOCH if change.unclean else before.high_watermark_epoch,
        offsets,
        epochs,
        before.removed if change.removed is None else change.removed,
        completed,
    )


def _in_order(
    replicas: tuple[int, ...], former: tuple[int, ...], values: tuple[int, ...], missing: int
) -> tuple[int, ...]:
    if not values:
        return ()
    held = dict(zip(former, values, strict=True))
    return tuple(held.get(replica, missing) for replica in replicas)
