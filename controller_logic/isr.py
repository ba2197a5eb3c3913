"""Accept or refuse the ISR that a leader asks for (KIP-497, 704, 841, 903;
``KafkaController.tryProcessAlterPartition``).

The leader alone knows which followers keep up, so it proposes. The controller alone knows which brokers are fenced,
restarted or shutting down, and which proposal came first, so it decides.
"""

from controller_logic import fencing
from controller_logic.batch import Batch
from controller_logic.commit import commit_partition
from controller_logic.commit_reports import commit_watermark_due
from controller_logic.fencing import Refusal
from controller_logic.lag import has_reported
from controller_logic.partition_results import answer_committed
from controller_logic.replica_machine import online_replicas
from controller_logic.watermark import committed_end
from controller_logic.working_topic import WorkingTopic
from state.broker import Broker
from state.change import PartitionChange
from state.events import AlterIsr
from state.partition import LeaderRecoveryState, Partition
from state.reason import Reason
from state.topic_events import IsrRow

RECOVERED, RECOVERING = LeaderRecoveryState.RECOVERED, LeaderRecoveryState.RECOVERING
UNKNOWN_BROKER_EPOCH = -1
# What is asked for one partition. A row asks the same as an event of its own.
OneIsr = AlterIsr | IsrRow
# The wire's default is 0, so a leader that does not know of recovery counts as recovered.
RECOVERY = {None: RECOVERED, 0: RECOVERED, 1: RECOVERING, "RECOVERED": RECOVERED, "RECOVERING": RECOVERING}


def alter_isr(batch: Batch, event: AlterIsr) -> None:
    """Commit the ISR that a leader asks for, or answer why not. The answer shows the partition as committed."""
    broker = fencing.registered_broker(batch, event.broker)
    if broker is None:
        return
    found = fencing.known_partition(batch, event)
    if isinstance(found, Refusal):
        batch.recorder.answer(*found, topic=event.topic, partition=event.partition)
        return
    topic, before = found
    refusal, after = altered(batch, broker, event.broker_epoch, topic, before, event)
    if after is not before:
        # A smaller ISR may let the high watermark rise, a larger one may hold it.
        commit_watermark_due(batch, topic, after)
    answer_committed(batch, topic, after, *(refusal or ()))


def altered(
    batch: Batch, broker: Broker, broker_epoch: int, topic: WorkingTopic, before: Partition, asked: OneIsr
) -> tuple[Refusal | None, Partition]:
    """Commit the ISR that a leader asks for, or refuse it. Return the refusal, and the partition as committed."""
    if broker_epoch != broker.broker_epoch:
        return fencing.stale_broker_epoch(broker, broker_epoch), before
    refusal = (
        fencing.fenced_leader(before, broker.broker, asked.leader_epoch)
        or fencing.fenced_version(before, asked.partition_epoch)
        or _ill_formed(before, broker.broker, asked)
        or ineligible(batch, before, asked)
    )
    if refusal is not None:
        return refusal, before
    change = isr_change(before, asked.isr, RECOVERY[asked.leader_recovery_state])
    if change is None:
        return None, before
    after = commit_partition(batch, topic, before, change, reason_of(before, change))
    if after is before:
        return Refusal("UNKNOWN_SERVER_ERROR", "the change would break an invariant"), before
    if after.leader != before.leader:
        message = f"the reassignment is complete, and broker {after.leader} leads now"
        return Refusal("NEW_LEADER_ELECTED", message), after
    return None, after


def isr_change(partition: Partition, isr: tuple[int, ...], recovery: LeaderRecoveryState) -> PartitionChange | None:
    """Return the change to the ISR asked for; None if members and recovery state are the same already."""
    same_members = set(isr) == set(partition.isr)
    if same_members and recovery == partition.leader_recovery_state:
        return None
    return PartitionChange(isr=None if same_members else isr, leader_recovery_state=recovery, by_leader=True)


def reason_of(partition: Partition, change: PartitionChange) -> Reason:
    """Return the reason for a change to the ISR that the leader asked for."""
    if change.leader_recovery_state != partition.leader_recovery_state:
        return Reason.LEADER_RECOVERED
    before, after = set(partition.isr), set(change.isr or partition.isr)
    if after < before:
        return Reason.ISR_SHRUNK
    return Reason.ISR_EXPANDED if after > before else Reason.ISR_ALTERED


def _ill_formed(partition: Partition, leader: int, asked: OneIsr) -> Refusal | None:
    isr = asked.isr
    strangers = [member for member in isr if member not in partition.replicas]
    recovery = RECOVERY[asked.leader_recovery_state]
    message = None
    if not isr:
        message = "the ISR is empty"
    elif len(set(isr)) != len(isr):
        message = "the ISR names a replica twice"
    elif strangers:
        message = f"brokers {strangers} are not assigned"
    elif leader not in isr:
        message = "the leader is not in the ISR"
    elif asked.isr_epochs is not None and len(asked.isr_epochs) != len(isr):
        message = "isr_epochs is not as long as isr"
    elif recovery == RECOVERING and partition.leader_recovery_state == RECOVERED:
        message = "a leader that has recovered does not go back to recovering"
    elif recovery == RECOVERING and len(isr) > 1:
        message = "a leader that is recovering is alone in the ISR"
    return None if message is None else Refusal("INVALID_REQUEST", message)


def ineligible(batch: Batch, partition: Partition, asked: OneIsr) -> Refusal | None:
    """Refuse members that are fenced or shutting down (KIP-841), restarted (KIP-903) or behind.

    As in Kafka, all members are checked, not only the new ones.
    """
    online = online_replicas(partition.replicas, partition.replica_states, batch.state.active)
    away = [member for member in asked.isr if member not in online]
    if away:
        return Refusal("INELIGIBLE_REPLICA", f"brokers {away} are fenced, shutting down or without their log")
    for member, epoch in zip(asked.isr, asked.isr_epochs or (), strict=False):
        if epoch not in (UNKNOWN_BROKER_EPOCH, batch.state.brokers[member].broker_epoch):
            return Refusal("INELIGIBLE_REPLICA", f"broker {member} has another broker epoch than {epoch}")
    behind = [member for member in asked.isr if member not in partition.isr and _is_behind(partition, member)]
    if behind:
        message = f"brokers {behind} have not reached the high watermark {partition.high_watermark}"
        return Refusal("INELIGIBLE_REPLICA", message)
    return None


def _is_behind(partition: Partition, member: int) -> bool:
    """Return whether a replica's log is known to end before the committed records that the leader holds."""
    place = partition.replicas.index(member)
    return has_reported(partition, place) and partition.log_end_offsets[place] < committed_end(partition)
