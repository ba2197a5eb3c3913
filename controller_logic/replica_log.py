"""What a crashed broker's logs prove (KIP-966 leaves this open; Kafka has no such report).

The problem: a process that crashed may have lost the ends of its logs, so none of its replicas is eligible any more,
although a crash without a loss of power loses nothing. The insight: a crash only shortens a log. Until it, a member of
the ISR and an eligible replica had every committed record. So the log is complete if it still reaches the high
watermark, whatever the leader epoch of its last record is. That is a proof because:

* The replica had every committed record until its broker registered without proof (``Partition.former_members``).
* Nothing was committed since: the ISR has had fewer than min.insync.replicas members from then on.
* The log is what the crash left: the broker has the directories that it had, and reports before it follows a leader.
  If it has followed one since, that leader had every committed record, or had been elected uncleanly, which ends all
  proofs.
* No record above the high watermark is committed: the engine itself decides the high watermark. Kafka's own brokers
  decide theirs and tell the engine none, so where there are any, nothing is proven. Neither is it if a broker knows a
  higher one than the engine.

    isr 1,2    elr        hw 90    3 leaves, and 1 and 2 commit up to 90; then 2 leaves and 1 crashes
    isr        elr 2               former members 1
                                   1 reports 90: it is eligible      1 reports 89: it is not

For any other replica a log that reaches the high watermark proves nothing: it may end with a deposed leader's records.
"""

from msgspec.structs import replace

from controller_logic import fencing, unclean_recovery
from controller_logic.availability import elect_leader, elected, election_reason
from controller_logic.batch import Batch
from controller_logic.commit import commit_partition
from controller_logic.commit_reports import commit_reported_log
from controller_logic.fencing import Refusal
from controller_logic.working_topic import WorkingTopic
from state.broker import Broker
from state.change import PartitionChange
from state.events import BrokerRegister, ReplicaLog
from state.features import ELIGIBLE_LEVEL
from state.ids import NO_EPOCH, NO_LEADER
from state.partition import Partition, ReportedLog
from state.reason import Reason


def has_former_logs(batch: Batch, event: BrokerRegister, former: Broker | None) -> bool:
    """Return whether a new process has the logs of its predecessor, perhaps without their ends."""
    if former is None or batch.state.level < ELIGIBLE_LEVEL or former.is_kraft or event.behind_gateway:
        return False
    return bool(former.log_dirs) and set(former.log_dirs).issubset(event.log_dirs)


def replica_log(batch: Batch, event: ReplicaLog) -> None:
    """Take a replica whose log is proven complete into the eligible ones, and keep the log for an election by logs."""
    if batch.state.level < ELIGIBLE_LEVEL:
        message = f"replica_log needs level {ELIGIBLE_LEVEL}, and the level is {batch.state.level}: raise it first"
        fencing.refuse_report(batch, "kind", Refusal("UNSUPPORTED_VERSION", message))
        return
    broker = fencing.registered_broker(batch, event.broker)
    if broker is None:
        return
    found = fencing.reported_partition(batch, event)
    if found is None:
        return
    topic, partition = found
    wrong = _wrong_field(event, broker, partition)
    if wrong is not None:
        fencing.refuse_report(batch, *wrong)
        return
    if partition.leader == NO_LEADER and partition.leader_epoch != NO_EPOCH:
        log = ReportedLog(event.broker, event.broker_epoch, event.last_written_epoch, event.log_end_offset)
        partition = commit_reported_log(topic, partition, log)
    if is_complete(batch, partition, event):
        _take_in(batch, topic, partition, event.broker)
    elif unclean_recovery.is_waiting(partition):
        elect_leader(batch, topic, partition)
    batch.recorder.answer_if_requested()


def _wrong_field(event: ReplicaLog, broker: Broker, partition: Partition) -> tuple[str, Refusal] | None:
    """Return the field that cannot be as it is, and why; None if there is none."""
    if event.broker not in partition.replicas:
        return "broker", fencing.holds_no_replica(event.broker, event.topic, event.partition)
    if event.broker_epoch != broker.broker_epoch:
        return "broker_epoch", fencing.stale_broker_epoch(broker, event.broker_epoch)
    if event.directory and broker.log_dirs and event.directory not in broker.log_dirs:
        return "directory", Refusal("INVALID_REQUEST", f"broker {event.broker} has no log directory {event.directory}")
    if event.last_written_epoch > partition.leader_epoch:
        message = f"{event.topic}-{event.partition} is in leader epoch {partition.leader_epoch}, and none is later"
        return "last_written_epoch", Refusal("INVALID_REQUEST", message)
    return None


def is_complete(batch: Batch, partition: Partition, event: ReplicaLog) -> bool:
    """Return whether a reported log is proven to have every committed record."""
    committed = partition.high_watermark
    return (
        event.broker in partition.former_members
        and event.log_end_offset >= committed >= event.high_watermark
        and partition.high_watermark_epoch != NO_EPOCH
        and batch.state.has_log_reports
        and not any(held is not None and held.is_kraft for held in map(batch.state.brokers.get, partition.replicas))
    )


def _take_in(batch: Batch, topic: WorkingTopic, partition: Partition, broker: int) -> None:
    """Make a replica eligible. It leads at once if no other replica does and its broker serves."""
    change = None
    if partition.leader == NO_LEADER:
        change = elected(batch, topic, replace(partition, elr=(*partition.elr, broker)), partition.replica_states)
    reason = Reason.LOG_COMPLETE if change is None else election_reason(partition, change)
    change = replace(change or PartitionChange(), proven=frozenset({broker}))
    commit_partition(batch, topic, partition, change, reason)


def recover(batch: Batch) -> None:
    """Elect where a partition has waited for long enough for the logs of crashed members."""
    if batch.state.recoveries_due:
        for topic, partition in unclean_recovery.waiting_now(batch, batch.state.now_ms):
            elect_leader(batch, topic, partition)
