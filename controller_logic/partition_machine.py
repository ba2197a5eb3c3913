"""The states of a partition (Kafka's ``PartitionStateMachine``).

| from                 | to                   | when                                                      |
|----------------------|----------------------|-----------------------------------------------------------|
| NonExistentPartition | NewPartition         | its topic or it is created                                |
| NewPartition         | OnlinePartition      | an assigned replica is online: the first one leads        |
| OnlinePartition      | OnlinePartition      | another leader is elected, or the ISR changes             |
| OnlinePartition      | OfflinePartition     | the leader is gone and no other replica may lead          |
| OfflinePartition     | OnlinePartition      | a replica that may lead is online again, or unclean is on |
| OfflinePartition     | NonExistentPartition | its topic is deleted; in one event from any state         |

The transitions that Kafka allows are in ``state.transitions``. ``commit`` withholds any other one and reports it.

These functions return None where nothing changes.
"""

from collections.abc import Set

from controller_logic.election import Elected, elect_first, elect_offline
from controller_logic.replica_machine import ReplicaStates
from state.change import PartitionChange
from state.ids import NO_EPOCH, NO_LEADER
from state.partition import LeaderRecoveryState, Partition, PartitionState

_ONLINE = PartitionState.OnlinePartition


def led_by(elected: Elected, states: ReplicaStates | None = None) -> PartitionChange:
    """Put a newly elected leader in place. One that was elected uncleanly has yet to recover (KIP-704)."""
    return PartitionChange(
        state=_ONLINE,
        leader=elected.leader,
        isr=elected.isr,
        leader_recovery_state=LeaderRecoveryState.RECOVERING if elected.unclean else None,
        replica_states=states,
        unclean=elected.unclean,
        eligible=elected.eligible,
    )


def elected_online(
    partition: Partition,
    online: tuple[int, ...],
    *,
    unclean_allowed: bool,
    by_logs: bool = False,
    states: ReplicaStates | None = None,
) -> PartitionChange | None:
    """Bring a partition without a leader online, if a replica may lead it."""
    elected = elected_from(partition, partition.isr, online, unclean_allowed=unclean_allowed, by_logs=by_logs)
    return None if elected is None else led_by(elected, states)


def elected_from(
    partition: Partition, isr: tuple[int, ...], online: tuple[int, ...], *, unclean_allowed: bool, by_logs: bool = False
) -> Elected | None:
    """Elect a leader of a partition that has none, or will have none, from an ISR and what else is known.

    ``by_logs`` leaves every unclean election, also that of the last known leader, to ``unclean_recovery``.
    """
    if partition.leader_epoch == NO_EPOCH:
        return elect_first(online)
    lost = partition.lost_logs
    last_known = () if by_logs else tuple([replica for replica in partition.last_known_elr if replica not in lost])
    return elect_offline(
        tuple([member for member in isr if member not in lost]) if lost else isr,
        with_logs_first(partition, online),
        elr=partition.elr,
        last_known=last_known,
        unclean_allowed=unclean_allowed and not by_logs,
    )


def with_logs_first(partition: Partition, online: tuple[int, ...]) -> tuple[int, ...]:
    """Return ``online`` with the replicas that have no log last, because they would lose every record."""
    lost = partition.lost_logs
    return tuple(sorted(online, key=lost.__contains__)) if lost else online


def without(
    partition: Partition,
    lost: Set[int],
    states: ReplicaStates,
    online: tuple[int, ...],
    *,
    unclean_allowed: bool,
    keeps_last: bool,
) -> PartitionChange | None:
    """Take the replicas on ``lost`` out of leadership and ISR.

    With ``keeps_last`` the ISR never loses its last member. If all of its members go at once, the former leader stays
    in it, because it has every committed record. The classic controller takes members out one by one, so there the
    order determines which one stays. Eligible replicas and the last leader, if they are kept, need no such member.
    """
    if partition.leader in lost:
        elected = elect_offline(partition.isr, online, elr=partition.elr, unclean_allowed=unclean_allowed)
        if elected is not None:
            return led_by(elected, states)
        return PartitionChange(
            state=PartitionState.OfflinePartition,
            leader=NO_LEADER,
            isr=(partition.leader,) if keeps_last else (),
            replica_states=states,
        )
    isr = tuple([member for member in partition.isr if member not in lost])
    if keeps_last:
        isr = isr or partition.isr[:1]
    if isr != partition.isr:
        return PartitionChange(isr=isr, replica_states=states)
    return None if states == partition.replica_states else PartitionChange(replica_states=states)
