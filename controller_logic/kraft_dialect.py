"""What isrflow's rules would have decided in the place of Kafka's own controller, in that controller's dialect.

The rules are those that lead clusters. KRaft's controller (``ReplicationControlManager``, ``PartitionChangeBuilder``)
differs from them on purpose in three ways, which are no differences here:

| what                 | isrflow                                   | KRaft                                            |
|----------------------|-------------------------------------------|--------------------------------------------------|
| leader epoch         | + 1 with each change but the leader's own | + 1 only for another leader or a dropped replica |
| controlled shutdown  | the last in-sync replica leads on         | the partition has no leader at once              |
| end of a move        | a replica that is down may be missing     | the whole target is in sync                      |

Where the replicas of a new topic are placed, which ISR a leader asks for and which target an admin names are not
decided by a controller. They are taken from what was observed.
"""

from collections.abc import Callable, Mapping, Set
from typing import NamedTuple

from msgspec.structs import replace

from controller_logic import partition_machine, reassignment
from controller_logic.apply import apply
from controller_logic.broker_sets import BrokerSets
from controller_logic.commit import with_eligible
from controller_logic.election import elect_offline, elect_preferred
from controller_logic.working_topic import WorkingTopic
from state.broker import Broker
from state.change import PartitionChange
from state.directories import is_readable
from state.ids import NO_LEADER
from state.observed_events import Cause
from state.partition import Partition

_NOTHING = PartitionChange()


class Scene(NamedTuple):
    """What a prediction depends on besides the partition."""

    # The broker that the operation is about; None if it is about none.
    broker: int | None
    # After the operation.
    brokers: Mapping[int, Broker]
    sets: BrokerSets
    # Whether partitions keep eligible leader replicas (KIP-966).
    has_eligible_leaders: bool

    def online(self, partition: Partition, replicas: tuple[int, ...]) -> tuple[int, ...]:
        """List the replicas that may lead, in order of assignment."""
        active, brokers = self.sets.active, self.brokers
        if self.sets.have_one_dir(replicas):
            return tuple([r for r in replicas if r in active])
        return tuple([r for r in replicas if r in active and is_readable(partition, brokers[r])])


# Returns the change that a rule decides on. ``after`` is what was observed.
_Rule = Callable[[Scene, WorkingTopic, Partition, Partition], PartitionChange | None]


def predicted(cause: Cause, scene: Scene, topic: WorkingTopic, before: Partition, after: Partition) -> Partition | None:
    """Return what the rules would have made of a partition, where Kafka's controller made ``after`` of it.

    None if nothing can be predicted.
    """
    rule = RULES.get(cause)
    if rule is None:
        return None
    change = rule(scene, topic, before, after)
    if change is None:
        return before
    change = _settled(scene, topic, before, change)
    if scene.has_eligible_leaders:
        change = with_eligible(before, change, topic.min_isr)
    made = apply(before, change)
    is_dropped = made.replicas != before.replicas and not set(before.replicas) <= set(made.replicas)
    leader_epoch = before.leader_epoch + (made.leader != before.leader or is_dropped)
    return made if leader_epoch == made.leader_epoch else replace(made, leader_epoch=leader_epoch)


def first_leader(scene: Scene, after: Partition) -> Partition | None:
    """Return what the rules would have made of a new partition with these replicas; None if none of them is online."""
    online = scene.online(after, after.replicas)
    return replace(after, leader=online[0], isr=online, leader_epoch=0, partition_epoch=0) if online else None


def _settled(scene: Scene, topic: WorkingTopic, before: Partition, change: PartitionChange) -> PartitionChange:
    """Add the end of a reassignment to a change that completes it."""
    if not (before.is_reassigning or change.adding_replicas or change.removing_replicas):
        return change
    made = apply(before, change)
    if not made.is_reassigning or not set(reassignment.target_of(made)) <= set(made.isr):
        return change
    return reassignment.change_to_complete(before, change, scene.sets, topic.min_isr) or change


def _lost(scene: Scene, topic: WorkingTopic, before: Partition, _after: Partition) -> PartitionChange | None:
    """Take the broker out of leadership and ISR."""
    if scene.broker is None:
        return None
    lost = {scene.broker}
    online = tuple([replica for replica in scene.online(before, before.replicas) if replica not in lost])
    return partition_machine.without(
        before,
        lost,
        before.replica_states,
        online,
        unclean_allowed=topic.unclean_allowed,
        keeps_last=not scene.has_eligible_leaders,
    )


def _directory_lost(scene: Scene, topic: WorkingTopic, before: Partition, after: Partition) -> PartitionChange | None:
    broker = scene.brokers.get(NO_LEADER if scene.broker is None else scene.broker)
    is_elsewhere = broker is None or is_readable(before, broker)
    return None if is_elsewhere else _lost(scene, topic, before, after)


def _back(scene: Scene, topic: WorkingTopic, before: Partition, _after: Partition) -> PartitionChange | None:
    """Elect where there is no leader."""
    if before.leader != NO_LEADER:
        return None
    online = scene.online(before, before.replicas)
    return partition_machine.elected_online(before, online, unclean_allowed=topic.unclean_allowed)


def _asked_by_leader(_scene: Scene, _topic: WorkingTopic, before: Partition, after: Partition) -> PartitionChange:
    """Take the ISR and the recovery that the leader asked for. Replicas that a reassignment drops were in it."""
    dropped = tuple([member for member in before.isr if member not in after.replicas])
    recovery = after.leader_recovery_state
    return PartitionChange(isr=after.isr + dropped, leader_recovery_state=recovery, by_leader=True)


def _preferred(scene: Scene, _topic: WorkingTopic, before: Partition, _after: Partition) -> PartitionChange | None:
    elected = elect_preferred(before.replicas, before.isr, scene.online(before, before.replicas))
    return None if elected is None else partition_machine.led_by(elected)


def _unclean(scene: Scene, _topic: WorkingTopic, before: Partition, _after: Partition) -> PartitionChange | None:
    elected = elect_offline(before.isr, scene.online(before, before.replicas), unclean_allowed=True)
    return None if elected is None else partition_machine.led_by(elected)


def _moved(scene: Scene, topic: WorkingTopic, before: Partition, after: Partition) -> PartitionChange | None:
    """Begin a move to the target that was observed, or go back to it."""
    target = reassignment.target_of(after)
    return reassignment.change_to_begin(before, target, scene.sets, unclean_allowed=topic.unclean_allowed)


def _only_noted(_scene: Scene, _topic: WorkingTopic, _before: Partition, _after: Partition) -> PartitionChange:
    """Change nothing but the partition epoch. ``raises_epochs`` stands for what the rules do not compare."""
    return replace(_NOTHING, raises_epochs=True, by_leader=True)


RULES: Mapping[Cause, _Rule] = {
    Cause.session_expired: _lost,
    Cause.session_or_shutdown: _lost,
    Cause.controlled_shutdown: _lost,
    Cause.shutdown_complete: _lost,
    Cause.stopped_session_ended: _lost,
    Cause.broker_unregistered: _lost,
    Cause.directory_failed: _directory_lost,
    Cause.broker_ready: _back,
    Cause.isr_shrunk: _asked_by_leader,
    Cause.isr_expanded: _asked_by_leader,
    Cause.leader_recovered: _asked_by_leader,
    Cause.reassignment_ended: _asked_by_leader,
    Cause.preferred_election: _preferred,
    Cause.unclean_election: _unclean,
    Cause.reassignment_began: _moved,
    Cause.reassignment_cancelled: _moved,
    Cause.reassignment_done_at_once: _moved,
    Cause.replica_placed: _only_noted,
    Cause.elr_cleared: _only_noted,
}
# A broker comes or goes, so partitions may have been left out.
ABOUT_ALL_OF_A_BROKER: Set[Cause] = frozenset(
    {cause for cause, rule in RULES.items() if rule in (_lost, _directory_lost, _back)}
)
