"""Continue from an ISR that a leader wrote into ZooKeeper itself (``KafkaController.processIsrChangeNotification``).

With an ``inter.broker.protocol.version`` below 2.7 a leader changes its ISR there, and acts on it before the controller
hears of it. So records may be committed that only the written ISR has, and a leader must come from it.

    decided             leader 1 epoch 7  isr 1,2,3      written    leader 1 epoch 7  isr 1      the ISR becomes 1
    decided meanwhile   leader 2 epoch 8  isr 2,3        written    leader 1 epoch 7  isr 1      2 does not lead
    replicas 2,3 too    leader 2 epoch 8  isr 2,3        written    leader 1 epoch 7  isr 1      1 is a replica again

After the first case no broker has heard of epoch 8, because the gateway could not write it over what the leader wrote.
So the log of a replica that was removed in it is still there.

A member may have restarted since the ISR was written, and may have lost the end of its log in a crash. To the classic
controller a bounced broker has failed first and then started (``KafkaController.processBrokerChange``), so it leaves
the ISR unless it is the last member. The zxids tell whether it has: the incarnation of a broker in ZooKeeper mode is
the zxid that made its znode.
"""

import re
from collections.abc import Set

from msgspec.structs import replace

from controller_logic import fencing
from controller_logic.batch import Batch
from controller_logic.commit import commit_partition
from controller_logic.commit_reports import commit_watermark_due
from controller_logic.election import elect_offline
from controller_logic.fencing import Refusal
from controller_logic.isr import RECOVERY, isr_change, reason_of
from controller_logic.partition_machine import led_by
from controller_logic.partition_results import answer_committed
from controller_logic.replica_machine import first_states, online_replicas
from controller_logic.working_topic import WorkingTopic
from state.change import PartitionChange
from state.ids import NO_LEADER
from state.partition import LeaderRecoveryState, Partition, PartitionState
from state.reason import Reason
from state.written_events import IsrWritten

Ids = tuple[int, ...]

_ZXID = re.compile(r"[0-9]{1,19}")


def isr_written(batch: Batch, event: IsrWritten) -> None:
    """Commit the ISR that was written, less the members that are not online, and replace a leader outside it."""
    found = fencing.known_partition(batch, event)
    if isinstance(found, Refusal):
        batch.recorder.answer(*found, topic=event.topic, partition=event.partition)
        return
    topic, partition = found
    refusal = fencing.fenced_version(partition, event.partition_epoch) or _impossible(partition, event)
    if refusal is not None:
        answer_committed(batch, topic, partition, *refusal)
        return
    change, reason = _change(batch, topic, partition, event)
    if change is not None:
        after = commit_partition(batch, topic, partition, change, reason)
        if after is partition:
            message = "the change would break an invariant"
            answer_committed(batch, topic, partition, "UNKNOWN_SERVER_ERROR", message)
            return
        commit_watermark_due(batch, topic, after)
        partition = after
    answer_committed(batch, topic, partition)


def _impossible(partition: Partition, event: IsrWritten) -> Refusal | None:
    if event.leader_epoch > partition.leader_epoch:
        message = f"leader epoch {event.leader_epoch} is newer than {partition.leader_epoch}"
        return Refusal("NOT_CONTROLLER", message)
    if len(set(event.isr)) != len(event.isr) or event.broker not in event.isr:
        return Refusal("INVALID_REQUEST", f"isr {list(event.isr)} is expected to have its leader, and nobody twice")
    return None


def _change(
    batch: Batch, topic: WorkingTopic, partition: Partition, event: IsrWritten
) -> tuple[PartitionChange | None, Reason]:
    """Return the change; None if the ISR is the same."""
    members = tuple([member for member in event.isr if member in partition.replicas])
    online = online_replicas(partition.replicas, partition.replica_states, batch.state.active)
    restarted = _restarted(batch, event, {*online, partition.leader}.intersection(members))
    online = tuple([replica for replica in online if replica not in restarted])
    if partition.leader in members and partition.leader not in restarted:
        isr = tuple([member for member in members if member in online or member == partition.leader])
        change = isr_change(partition, isr, RECOVERY[event.leader_recovery_state])
        if change is None and _must_hear(partition, event, isr):
            return PartitionChange(raises_epochs=True), Reason.ISR_SHRUNK
        if change is None:
            return None, Reason.ISR_ALTERED
        # The leader must hear of what it did not write.
        is_its_own = event.leader_epoch == partition.leader_epoch and isr == event.isr
        return (change if is_its_own else _of_controller(change)), reason_of(partition, change)
    removed = tuple([member for member in event.isr if member not in partition.replicas])
    if _is_needed(batch, removed, members, online):
        back = _taken_back(batch, partition, removed)
        replicas, states = back.replicas or (), back.replica_states or ()
        online = online_replicas(replicas, states, batch.state.active)
        return _led(batch, topic, event, back, event.isr, online), Reason.REASSIGNMENT
    if not members or (partition.leader == NO_LEADER and partition.isr == members):
        return None, Reason.ISR_ALTERED
    lasting = tuple([member for member in members if member not in restarted])
    change = _led(batch, topic, event, PartitionChange(), lasting, online)
    return change, Reason.UNCLEAN_ELECTION if change.unclean else Reason.LEADER_FENCED


def _restarted(batch: Batch, event: IsrWritten, members: Set[int]) -> Set[int]:
    """Return the ``members`` that restarted after the ISR was written; none if all of them did."""
    if event.zxid is None:
        return frozenset()
    since = {member for member in members if _began(batch, member) > event.zxid}
    return since if since != members else frozenset()


def _began(batch: Batch, member: int) -> int:
    """Return the zxid at which a broker in ZooKeeper mode started; 0 for any other broker."""
    incarnation = batch.state.brokers[member].incarnation
    return int(incarnation) if _ZXID.fullmatch(incarnation) else 0


def _must_hear(partition: Partition, event: IsrWritten, isr: Ids) -> bool:
    """Return whether the leader acts on another ISR, so that it ignores a request of its own leader epoch."""
    is_now = event.leader_epoch == partition.leader_epoch
    return is_now and set(event.isr) != set(isr)


def _is_needed(batch: Batch, removed: Ids, members: Ids, online: Ids) -> bool:
    """Return whether, of a written ISR, only replicas that a reassignment has removed since can lead."""
    return not members or (set(members).isdisjoint(online) and not batch.state.active.isdisjoint(removed))


def _taken_back(batch: Batch, partition: Partition, removed: Ids) -> PartitionChange:
    """Assign replicas once more that a reassignment removed. It continues until the target has caught up with them."""
    return PartitionChange(
        replicas=partition.replicas + removed,
        removing_replicas=partition.removing_replicas + removed,
        replica_states=partition.replica_states + first_states(removed, batch.state.active),
        removed=tuple([entry for entry in partition.removed if entry.broker not in removed]),
    )


def _led(
    batch: Batch,
    topic: WorkingTopic,
    event: IsrWritten,
    change: PartitionChange,
    isr: Ids,
    online: Ids,
) -> PartitionChange:
    """Add to ``change`` the election of a leader from a written ISR, or the wait for one."""
    # Brokers that write the ISR themselves know nothing of recovery (KIP-704).
    change = replace(change, elected_from=isr, leader_recovery_state=LeaderRecoveryState.RECOVERED)
    elected = elect_offline(isr, online, unclean_allowed=topic.unclean_allowed)
    if elected is not None:
        won = led_by(elected)
        return replace(change, state=won.state, leader=won.leader, isr=won.isr, unclean=won.unclean)
    # As always when all members are gone, one with every committed record stays.
    isr = (event.broker,) if event.broker in isr else isr[:1]
    return replace(change, state=PartitionState.OfflinePartition, leader=NO_LEADER, isr=isr)


def _of_controller(change: PartitionChange) -> PartitionChange:
    return PartitionChange(isr=change.isr, leader_recovery_state=change.leader_recovery_state)
