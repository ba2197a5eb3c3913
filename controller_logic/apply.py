"""Add a change to a partition: the one place where epochs go up."""

from collections.abc import Container
from typing import TypeVar

from isrflow.state.change import PartitionChange
from isrflow.state.ids import NO_EPOCH, NO_LEADER, UNKNOWN_OFFSET
from isrflow.state.partition import Partition, ReplicaLag

_T = TypeVar("_T")
_NO_LAG = ReplicaLag()


def apply(before: Partition, change: PartitionChange, told: Container[int] = ()) -> Partition:
    """Return ``before`` with ``change`` made; brokers in ``told`` are asked to act on it, if it is one.

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
    differs = differs and (leader != NO_LEADER or before.leader_epoch != NO_EPOCH)
    leader_epoch = before.leader_epoch + (differs and not change.by_leader)
    offsets, epochs, completed, requested, received = _by_replica(before, replicas)
    return Partition(
        before.partition,
        before.state if change.state is None else change.state,
        replicas,
        before.replica_states if change.replica_states is None else change.replica_states,
        isr,
        leader,
        leader_epoch,
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
        asked(replicas, requested, told, leader_epoch) if differs and told else requested,
        received,
        _in_order(replicas, before.replicas, before.lags, _NO_LAG),
        before.offline_dir_replicas if change.offline_dir_replicas is None else change.offline_dir_replicas,
    )


def asked(
    replicas: tuple[int, ...], requested: tuple[int, ...], told: Container[int], leader_epoch: int
) -> tuple[int, ...]:
    """Give the requested epochs when those of ``replicas`` that are ``told`` are asked for ``leader_epoch``."""
    if not requested:
        return tuple([leader_epoch if replica in told else NO_EPOCH for replica in replicas])
    pairs = zip(replicas, requested, strict=True)
    return tuple([leader_epoch if replica in told else epoch for replica, epoch in pairs])


def _by_replica(before: Partition, replicas: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Give the log end offsets, their epochs, and the completed, requested and received epochs of ``replicas``."""
    offsets, epochs, completed = before.log_end_offsets, before.offset_epochs, before.completed_epochs
    requested, received = before.requested_epochs, before.received_epochs
    if replicas == before.replicas:
        return offsets, epochs, completed, requested, received
    offsets = _in_order(replicas, before.replicas, offsets, UNKNOWN_OFFSET)
    held = (epochs, completed, requested, received)
    return offsets, *(_in_order(replicas, before.replicas, values, NO_EPOCH) for values in held)


def _in_order(
    replicas: tuple[int, ...], former: tuple[int, ...], values: tuple[_T, ...], missing: _T
) -> tuple[_T, ...]:
    if not values or replicas == former:
        return values
    held = dict(zip(former, values, strict=True))
    return tuple(held.get(replica, missing) for replica in replicas)
