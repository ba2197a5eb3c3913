"""Move a partition to other brokers without losing a record (KIP-455; ``KafkaController.onPartitionReassignment``).

The problem: the replicas that a partition has (ORS) must hand over to those that it is to have (TRS). The added ones
have to catch up first, which can take hours, while brokers come and go and an admin changes the target or cancels.

The insight is Kafka's: during the move the partition has both sets, and the whole move is in its record, so any
controller can continue it. ``replicas`` begins with the target.

    ORS = 1,2   TRS = 2,3

    step       replicas              adding     removing   isr     leader
    before     1,2                                         1,2     1
    begun      2,3,1                 3          1          1,2     1        TRS ++ (ORS - TRS); 3 is NewReplica
    ended      2,3                                         2,3     2        once 3 joins the ISR; 1 deletes its log
    cancelled  1,2                                         1,2     1        3 deletes its log

The move ends in the same change that brings the last added replica into the ISR. If the leader is not in TRS,
another one is elected in that change too, so the leader epoch goes up once. The classic controller takes several
steps and raises it with each.

Two rules about when it may end:

* Every added replica must be in sync. A replica that stays but is down is not waited for, as long as enough others
  are in sync for min.insync.replicas; it was out of sync before the move as well. The classic controller waits for
  all of TRS, so a dead broker would keep the old replicas, and a deletion of the topic, waiting.
* The leader must not be gone. A replica that the end removes may hold the only complete copy.
"""

from msgspec.structs import replace

from controller_logic.apply import apply
from controller_logic.broker_sets import BrokerSets
from controller_logic.election import elect_reassigned
from controller_logic.partition_machine import elected_from, led_by
from controller_logic.replica_machine import ReplicaStates, online_replicas, removed_replicas, transition
from state.change import PartitionChange
from state.directories import directory_of
from state.ids import NO_EPOCH, NO_LEADER
from state.partition import Partition, RemovedReplica, ReplicaState

Ids = tuple[int, ...]


def origin_of(partition: Partition) -> Ids:
    """List the replicas that a cancelled reassignment goes back to, in Kafka's order."""
    return _without(partition.replicas, partition.adding_replicas)


def target_of(partition: Partition) -> Ids:
    """List the replicas that the partition will have once its reassignment ends."""
    return _without(partition.replicas, partition.removing_replicas)


def change_to_begin(
    partition: Partition, target: Ids, brokers: BrokerSets, *, unclean_allowed: bool, by_logs: bool = False
) -> PartitionChange | None:
    """Return the change that begins to move a partition to ``target``, in place of any reassignment under way.

    Replicas that only an earlier target added are dropped at once. None if no replica with all records would be
    left to lead.
    """
    origin = origin_of(partition)
    adding, removing = _without(target, origin), _without(origin, target)
    if partition.leader_epoch == NO_EPOCH:
        # There was no leader yet, so there is no record to catch up with.
        adding, removing, replicas = (), (), target
    else:
        replicas = target + removing
    dropped = _without(partition.replicas, replicas)
    held = dict(zip(partition.replicas, partition.replica_states, strict=True))
    new = transition(ReplicaState.NonExistentReplica, ReplicaState.NewReplica)
    states = tuple([held.get(replica, new) for replica in replicas])
    if not adding:
        states = _online(states)
    change = PartitionChange(
        replicas=replicas,
        adding_replicas=adding,
        removing_replicas=removing,
        replica_states=states,
        isr=_without(partition.isr, dropped),
        removed=tuple([entry for entry in partition.removed if entry.broker not in replicas])
        + _removed(partition, dropped, brokers),
    )
    online = online_replicas(replicas, states, brokers.active)
    return _led(partition, change, dropped, online, unclean_allowed=unclean_allowed, by_logs=by_logs)


def _led(
    partition: Partition,
    change: PartitionChange,
    dropped: Ids,
    online: Ids,
    *,
    unclean_allowed: bool,
    by_logs: bool,
) -> PartitionChange | None:
    """Add an election to ``change`` if the leader is dropped or there is none."""
    if partition.leader != NO_LEADER and partition.leader not in dropped:
        return change
    isr = change.isr or ()
    left = replace(
        partition,
        elr=_without(partition.elr, dropped),
        last_known_elr=_without(partition.last_known_elr, dropped),
    )
    elected = elected_from(left, isr, online, unclean_allowed=unclean_allowed, by_logs=by_logs)
    if elected is not None:
        won = led_by(elected)
        recovery = won.leader_recovery_state
        return replace(
            change,
            state=won.state,
            leader=won.leader,
            isr=won.isr,
            leader_recovery_state=recovery,
            unclean=won.unclean,
            eligible=won.eligible,
        )
    is_lossless = isr or left.elr or partition.leader_epoch == NO_EPOCH
    if not (partition.isr or partition.elr):
        is_lossless = is_lossless or left.last_known_elr
    return change if is_lossless and partition.leader == NO_LEADER else None


def change_to_complete(
    partition: Partition, change: PartitionChange, brokers: BrokerSets, min_isr: int
) -> PartitionChange | None:
    """Return ``change`` together with the end of the reassignment; None while it must continue."""
    after = apply(partition, change)
    if not after.is_reassigning:
        return None
    target, removing = target_of(after), after.removing_replicas
    isr = _without(after.isr, removing)
    if not _has_caught_up(after, _without(isr, after.lost_logs), brokers, min_isr):
        return None
    leader = after.leader
    if leader != NO_LEADER and leader not in brokers.live:
        return None
    held = dict(zip(after.replicas, after.replica_states, strict=True))
    states = tuple([held[replica] for replica in target])
    if leader in removing:
        elected = elect_reassigned(isr, online_replicas(target, states, brokers.active))
        if elected is None:
            return None
        leader = elected.leader
    gone = _removed(replace(after, leader_epoch=partition.leader_epoch), removing, brokers)
    return replace(
        change,
        leader=leader,
        isr=isr,
        replicas=target,
        adding_replicas=(),
        removing_replicas=(),
        replica_states=_online(states),
        removed=after.removed + gone,
        directories=change.directories and tuple([directory_of(after, replica) for replica in target]),
        by_leader=False,
    )


def _has_caught_up(after: Partition, isr: Ids, brokers: BrokerSets, min_isr: int) -> bool:
    target = target_of(after)
    missing = _without(target, isr)
    if not isr or not missing:
        return bool(isr)
    held = dict(zip(after.replicas, after.replica_states, strict=True))
    for replica in missing:
        lost_its_log = replica in brokers.active and held[replica] == ReplicaState.OfflineReplica
        is_down = lost_its_log or replica not in brokers.live
        if replica in after.adding_replicas or not is_down:
            return False
    return after.leader != NO_LEADER and len(isr) >= min_isr


def _removed(partition: Partition, gone: Ids, brokers: BrokerSets) -> tuple[RemovedReplica, ...]:
    # An unregistered broker will not come back to remove its log.
    return removed_replicas(partition, tuple([b for b in gone if b in brokers.awaited]), brokers.live)


def _online(states: ReplicaStates) -> ReplicaStates:
    return tuple(
        [
            transition(state, ReplicaState.OnlineReplica) if state == ReplicaState.NewReplica else state
            for state in states
        ]
    )


def _without(replicas: Ids, others: Ids) -> Ids:
    return tuple([replica for replica in replicas if replica not in others])
