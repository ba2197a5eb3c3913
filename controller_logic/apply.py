"""Apply a change to a partition, and raise its epochs.

Stale requests are recognized by their epochs, so each epoch must rise exactly when the decision changes. If every rule
raised epochs itself, a rule that forgot would let two leaders share one.

    partition_epoch  + 1   leader, isr, recovery state, replicas, adding or removing differ after the change
    leader_epoch     + 1   the same, unless the leader itself asked for the change (KIP-497)
    partition_epoch  + 1   replicas are in other log directories; the leader epoch stays (KIP-858)
    partition_epoch  + 1   other replicas are eligible, or the last leader is another; the leader epoch stays (KIP-966)
    both             + 1   the leader acts on another ISR, and must hear of the one that is decided
    neither                only replica states differ, or the partition has had no leader yet
"""

from collections.abc import Container
from typing import TypeVar

from msgspec.structs import replace

from state.change import PartitionChange
from state.directories import NO_DIRECTORY, kept
from state.ids import NO_EPOCH, NO_LEADER, UNKNOWN_OFFSET
from state.partition import Partition, ReplicaLag, ReportedLog

_T = TypeVar("_T")
_NO_LAG = ReplicaLag()


def apply(before: Partition, change: PartitionChange, addressed: Container[int] = ()) -> Partition:
    """Return ``before`` with ``change`` made (classic controller: ``LeaderAndIsr.newLeaderAndIsr``).

    If an epoch rises, the brokers in ``addressed`` are asked to act on it. After an unclean election the high watermark
    belongs to no epoch, so that it may go back.
    """
    leader = before.leader if change.leader is None else change.leader
    isr = before.isr if change.isr is None else change.isr
    recovery = before.leader_recovery_state if change.leader_recovery_state is None else change.leader_recovery_state
    replicas = before.replicas if change.replicas is None else change.replicas
    adding = before.adding_replicas if change.adding_replicas is None else change.adding_replicas
    removing = before.removing_replicas if change.removing_replicas is None else change.removing_replicas
    differs = change.raises_epochs or leader != before.leader or isr != before.isr
    differs = differs or recovery != before.leader_recovery_state or replicas != before.replicas
    differs = differs or (adding, removing) != (before.adding_replicas, before.removing_replicas)
    differs = differs and (leader != NO_LEADER or before.leader_epoch != NO_EPOCH)
    leader_epoch = before.leader_epoch + (differs and not change.by_leader)
    held = before if replicas == before.replicas else _by_replica(before, replicas)
    directories = held.directories if change.directories is None else kept(change.directories)
    return Partition(
        before.partition,
        before.state if change.state is None else change.state,
        replicas,
        before.replica_states if change.replica_states is None else change.replica_states,
        isr,
        leader,
        leader_epoch,
        before.partition_epoch + (differs or _is_told(before, change, directories)),
        recovery,
        adding,
        removing,
        before.high_watermark,
        NO_EPOCH if change.unclean else before.high_watermark_epoch,
        held.log_end_offsets,
        held.offset_epochs,
        before.removed if change.removed is None else change.removed,
        held.completed_epochs,
        with_requested_epochs(replicas, held.requested_epochs, addressed, leader_epoch)
        if differs and addressed
        else held.requested_epochs,
        held.received_epochs,
        held.lags,
        _lost_logs(before, change, leader),
        directories,
        before.elr if change.elr is None else change.elr,
        before.last_known_elr if change.last_known_elr is None else change.last_known_elr,
        before.former_members if change.former_members is None else change.former_members,
        _reported_logs(before, leader, replicas) if before.reported_logs else (),
        before.min_isr_read if leader_epoch == before.leader_epoch else 0,
    )


def _is_told(before: Partition, change: PartitionChange, directories: tuple[str, ...]) -> bool:
    """Return whether brokers must hear of other directories, other eligible replicas or another last leader."""
    if before.partition_epoch == NO_EPOCH:
        return False
    is_moved = change.directories is not None and directories != before.directories
    return (
        is_moved or change.elr not in (None, before.elr) or change.last_known_elr not in (None, before.last_known_elr)
    )


def _reported_logs(before: Partition, leader: int, replicas: tuple[int, ...]) -> tuple[ReportedLog, ...]:
    if leader != NO_LEADER:
        return ()
    return tuple([log for log in before.reported_logs if log.broker in replicas])


def _lost_logs(before: Partition, change: PartitionChange, leader: int) -> tuple[int, ...]:
    if change.lost_logs is not None or not before.lost_logs:
        return change.lost_logs or ()
    if leader != NO_LEADER:
        return ()
    replicas = change.replicas or before.replicas
    return tuple([replica for replica in before.lost_logs if replica in replicas])


def with_requested_epochs(
    replicas: tuple[int, ...], requested: tuple[int, ...], addressed: Container[int], leader_epoch: int
) -> tuple[int, ...]:
    """Return ``requested`` with ``leader_epoch`` for each replica that is ``addressed``."""
    epochs = list(requested or (NO_EPOCH,) * len(replicas))
    for place, replica in enumerate(replicas):
        if replica in addressed:
            epochs[place] = leader_epoch
    return tuple(epochs)


def _by_replica(before: Partition, replicas: tuple[int, ...]) -> Partition:
    """Return ``before`` with its entries about replicas in the order of ``replicas``."""

    def ordered(values: tuple[_T, ...], missing: _T) -> tuple[_T, ...]:
        if not values:
            return values
        held = dict(zip(before.replicas, values, strict=True))
        return tuple([held.get(replica, missing) for replica in replicas])

    return replace(
        before,
        log_end_offsets=ordered(before.log_end_offsets, UNKNOWN_OFFSET),
        offset_epochs=ordered(before.offset_epochs, NO_EPOCH),
        completed_epochs=ordered(before.completed_epochs, NO_EPOCH),
        requested_epochs=ordered(before.requested_epochs, NO_EPOCH),
        received_epochs=ordered(before.received_epochs, NO_EPOCH),
        lags=ordered(before.lags, _NO_LAG),
        directories=kept(ordered(before.directories, NO_DIRECTORY)),
    )
