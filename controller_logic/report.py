"""Apply a broker's reports on decisions: it carried one out, or it lost a log directory (KIP-112).

A report of many replicas has a row for each. A row counts as a ``replica_report`` of its own would, and rows count in
their order. Every shard takes the rows of its own topics. Refused rows are named in the answer, if the event asks for
one.

One event has room for one decision of a kind about a partition (``state.canonical``). A replica that goes offline and
comes back would be two. So a row is refused if an earlier row of the event took the replica offline or online.
"""

from controller_logic import deletion, fencing, removal, request_epochs
from controller_logic.availability import replica_started, replicas_failed
from controller_logic.batch import Batch
from controller_logic.fencing import Refusal
from controller_logic.partition_results import answer_by_partition, result_of
from state.broker import Broker
from state.canonical import RESULTS_MAX
from state.decisions import PartitionResult
from state.events import ReplicaReport, ReplicaReports
from state.partition import ReplicaState
from state.reason import Reason
from state.topic_events import OneReport, TopicReports

# Brokers report this error for a replica whose log directory is lost. Other errors mean that a decision came late or
# twice, and that the replica is unchanged.
_LOST_LOG = "KAFKA_STORAGE_ERROR"
_SWITCHED = Refusal("INVALID_REQUEST", "an earlier row took the replica offline or online")
# A topic and the number of a partition.
_Place = tuple[str, int]


def replica_report(batch: Batch, event: ReplicaReport) -> None:
    """Take a replica offline if it lost its log, and online if it leads or follows again."""
    broker = fencing.in_its_epoch(batch, event.broker, event.broker_epoch)
    if broker is None:
        return
    refusal = _reported(batch, broker, event, event, set())
    if refusal is not None and refusal == fencing.holds_no_replica(event.broker, event.topic, event.partition):
        batch.recorder.reject("broker", refusal.message, Reason.REQUEST_REFUSED)
    batch.recorder.answer_if_requested(*(refusal or ()))


def replica_reports(batch: Batch, event: ReplicaReports) -> None:
    """Do for each row what ``replica_report`` does."""
    if event.rows > RESULTS_MAX:
        message = f"report on at most {RESULTS_MAX} replicas, not {event.rows}"
        batch.recorder.reject("topics", message, Reason.REQUEST_REFUSED)
        batch.recorder.answer_if_requested("INVALID_REQUEST", message)
        return
    broker = fencing.in_its_epoch(batch, event.broker, event.broker_epoch)
    if broker is None:
        return
    cluster = batch.state.cluster
    switched: set[_Place] = set()
    refused: list[PartitionResult] = []
    for named in [event.topics[place] for place in event.places_in(cluster.shard, cluster.shards)]:
        for row in named.partitions:
            refusal = _reported(batch, broker, named, row, switched)
            if refusal is not None:
                refused.append(result_of(named.topic, row.partition, refusal))
    if event.request_id is not None:
        answer_by_partition(batch, refused, part=bool(refused))


def _reported(
    batch: Batch, broker: Broker, named: ReplicaReport | TopicReports, report: OneReport, switched: set[_Place]
) -> Refusal | None:
    """Apply what a broker reports of its replica of a topic; return the refusal, if any.

    If the replica goes offline or online, its place is added to ``switched``.
    """
    refusal = fencing.of_another_topic(batch, named)
    if refusal is not None:
        return refusal
    topic = batch.state.topic(named.topic)
    if topic is None:
        return fencing.no_topic(named.topic)
    if topic.is_deleting:
        deletion.replica_reported(batch, topic, broker.broker, report)
        return None
    place = (named.topic, report.partition)
    if place in switched:
        return _SWITCHED
    partition = fencing.partition_of(topic, report.partition)
    if isinstance(partition, Refusal):
        return partition
    if removal.is_removed(partition, broker.broker):
        removal.replica_reported(batch, topic, partition, broker.broker, report)
        return None
    if broker.broker not in partition.replicas:
        return fencing.holds_no_replica(broker.broker, topic.topic, report.partition)
    partition = request_epochs.reported(batch, topic, partition, broker.broker, report)
    state = partition.replica_states[partition.replicas.index(broker.broker)]
    if report.outcome == "offline" or (report.outcome == "error" and report.error == _LOST_LOG):
        if state != ReplicaState.OfflineReplica:
            switched.add(place)
            replicas_failed(batch, topic, partition, frozenset({broker.broker}))
    elif (
        report.outcome in ("leader", "follower")
        and state == ReplicaState.OfflineReplica
        and report.leader_epoch == partition.leader_epoch
        and broker.is_active
    ):
        switched.add(place)
        replica_started(batch, topic, partition, broker.broker)
    return None
