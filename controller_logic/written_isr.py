"""Go on from an ISR that a leader wrote into ZooKeeper itself (``KafkaController.processIsrChangeNotification``).

With an ``inter.broker.protocol.version`` below 2.7 a leader changes its ISR there, and acts on it before the controller
hears of it. So records may be committed that only the written ISR has, and a leader must come from it.

    decided             leader 1 epoch 7  isr 1,2,3      written    leader 1 epoch 7  isr 1      the ISR becomes 1
    decided meanwhile   leader 2 epoch 8  isr 2,3        written    leader 1 epoch 7  isr 1      2 does not lead

In the second case no broker has heard of epoch 8, because the gateway could not write it over what the leader wrote.
"""

from msgspec.structs import replace

from controller_logic import fencing
from controller_logic.batch import Batch
from controller_logic.commit import commit_partition, commit_watermark_due
from controller_logic.election import elect_offline
from controller_logic.fencing import Refusal
from controller_logic.isr import RECOVERY, isr_change, reason_of
from controller_logic.partition_machine import led_by
from controller_logic.replica_machine import online_replicas
from controller_logic.working_topic import WorkingTopic
from state.change import PartitionChange
from state.ids import NO_LEADER
from state.partition import Partition, PartitionState
from state.reason import Reason
from state.written_events import IsrWritten


def isr_written(batch: Batch, event: IsrWritten) -> None:
    """Commit the ISR that was written, less the members that are not online, and replace a leader outside it."""
    found = fencing.known_partition(batch, event)
    if isinstance(found, Refusal):
        batch.recorder.answer(*found, topic=event.topic, partition=event.partition)
        return
    topic, partition = found
    refusal = fencing.fenced_version(partition, event) or _impossible(partition, event)
    if refusal is not None:
        batch.recorder.answer_committed(topic, partition, *refusal)
        return
    change, reason = _change(batch, topic, partition, event)
    if change is not None:
        after = commit_partition(batch, topic, partition, change, reason)
        if after is partition:
            message = "the change would break an invariant"
            batch.recorder.answer_committed(topic, partition, "UNKNOWN_SERVER_ERROR", message)
            return
        commit_watermark_due(batch, topic, after)
        partition = after
    batch.recorder.answer_committed(topic, partition)


def _impossible(partition: Partition, event: IsrWritten) -> Refusal | None:
    if event.leader_epoch > partition.leader_epoch:
        message = f"leader epoch {event.leader_epoch} is newer than {partition.leader_epoch}"
        return Refusal("NOT_CONTROLLER", message)
    if not event.isr or len(set(event.isr)) != len(event.isr) or event.broker not in event.isr:
        return Refusal("INVALID_REQUEST", f"isr {list(event.isr)} is expected to have its leader, and nobody twice")
    return None


def _change(
    batch: Batch, topic: WorkingTopic, partition: Partition, event: IsrWritten
) -> tuple[PartitionChange | None, Reason]:
    """Return the change; None if the ISR is the same, or if all of it was removed by a reassignment meanwhile."""
    written = tuple([member for member in event.isr if member in partition.replicas])
    online = online_replicas(partition.replicas, partition.replica_states, batch.state.active)
    if not written:
        return None, Reason.ISR_ALTERED
    if partition.leader in written:
        isr = tuple([member for member in written if member in online or member == partition.leader])
        change = isr_change(partition, isr, RECOVERY[event.leader_recovery_state])
        if change is None:
            return None, Reason.ISR_ALTERED
        # The leader must hear of what it did not write.
        is_its_own = event.leader_epoch == partition.leader_epoch and isr == event.isr
        return (change if is_its_own else _of_controller(change)), reason_of(partition, change)
    elected = elect_offline(written, online, unclean_allowed=topic.unclean_allowed)
    if elected is not None:
        # Brokers that write the ISR themselves know nothing of recovery (KIP-704).
        change = replace(led_by(elected), leader_recovery_state=None)
        return change, Reason.UNCLEAN_ELECTION if elected.unclean else Reason.LEADER_FENCED
    if partition.leader == NO_LEADER and partition.isr == written:
        return None, Reason.ISR_ALTERED
    offline = PartitionChange(state=PartitionState.OfflinePartition, leader=NO_LEADER, isr=written)
    return offline, Reason.LEADER_FENCED


def _of_controller(change: PartitionChange) -> PartitionChange:
    return PartitionChange(isr=change.isr, leader_recovery_state=change.leader_recovery_state)
