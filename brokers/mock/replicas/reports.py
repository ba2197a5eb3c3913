"""A broker's reports on its replicas: decisions carried out or refused, lost logs, and log ends."""

from collections.abc import Mapping

import structlog

from brokers.mock.control.outbox import LogEnd, Outbox
from brokers.mock.metadata import Metadata
from brokers.mock.replicas.partition import Partition, name_of
from bus.clock import now_ms
from state.decisions import LeaderAndIsr, StopReplica
from state.events import ReplicaReport, TopicPartition
from state.ids import NO_LEADER

logger = structlog.get_logger()

# The errors of one partition, as Kafka's ReplicaManager answers LeaderAndIsr and StopReplica.
STALE_CONTROLLER_EPOCH = "STALE_CONTROLLER_EPOCH"
FENCED_LEADER_EPOCH = "FENCED_LEADER_EPOCH"
UNKNOWN_TOPIC_OR_PARTITION = "UNKNOWN_TOPIC_OR_PARTITION"
KAFKA_STORAGE_ERROR = "KAFKA_STORAGE_ERROR"


def is_still_true(report: ReplicaReport, partitions: Mapping[TopicPartition, Partition]) -> bool:
    """Return whether a refused report must be sent again: one of a role or a deletion that still fits the replicas.

    Other reports are not repeated: a broker that loses its log stops, and no decision follows from the rest.
    """
    held = partitions.get(TopicPartition(report.topic, report.partition))
    if held is None or held.topic_id != report.topic_id:
        return report.outcome == "deleted"
    return (held.role.value, held.leader_epoch) == (report.outcome, report.leader_epoch)


def log_end_of(partition: Partition, metadata: Metadata) -> LogEnd | None:
    """Return a replica's log end as it may be sent to the engine; None if it may not."""
    topic = metadata.topics.get(partition.place.topic)
    if topic is not None and topic.state != "created" and partition.leader == NO_LEADER:
        return None  # the engine needs no log ends of a topic in deletion; while its deletion waits, it has leaders
    epoch, log = partition.reporting_epoch, partition.log
    return None if epoch is None else LogEnd(partition.topic_id, epoch, log.log_end_offset, log.log_start_offset)


class Reports:
    """The reports under the registration ``broker_epoch``."""

    def __init__(self, broker: int, outbox: Outbox) -> None:
        self._broker = broker
        self._outbox = outbox
        self.broker_epoch = -1

    def done(self, place: TopicPartition, topic_id: str, leader_epoch: int, outcome: str) -> None:
        """Report that a replica leads, follows, is stopped or deleted."""
        self._send(place, topic_id, leader_epoch, outcome, None)

    def refused(self, decision: LeaderAndIsr | StopReplica, error: str) -> None:
        """Report why a decision was not carried out, with Kafka's name of the error. The replica is unchanged."""
        place, epoch = TopicPartition(decision.topic, decision.partition), decision.leader_epoch
        logger.info("decision refused", partition=name_of(place), leader_epoch=epoch, error=error)
        self._send(place, decision.topic_id, epoch, "error", error)

    def offline(self, place: TopicPartition, topic_id: str, leader_epoch: int) -> None:
        """Report that a replica's log is lost."""
        self._send(place, topic_id, leader_epoch, "offline", KAFKA_STORAGE_ERROR)

    def _send(self, place: TopicPartition, topic_id: str, leader_epoch: int, outcome: str, error: str | None) -> None:
        self._outbox.send(
            ReplicaReport(
                time_ms=now_ms(),
                topic=place.topic,
                topic_id=topic_id,
                partition=place.partition,
                broker=self._broker,
                broker_epoch=self.broker_epoch,
                leader_epoch=leader_epoch,
                outcome=outcome,  # type: ignore[arg-type]
                error=error,
            )
        )
