"""All replicas of one broker, and the effect of decisions on them (Kafka's ``ReplicaManager``)."""

import contextlib

import structlog

from brokers.mock.control.outbox import LogEnd, Outbox
from brokers.mock.log.directory import LogDirectory
from brokers.mock.metadata import Metadata
from brokers.mock.replicas.crash_reports import CrashReports
from brokers.mock.replicas.fetchers import Fetchers
from brokers.mock.replicas.isr import IsrChanges
from brokers.mock.replicas.partition import Partition, Role, name_of
from brokers.mock.replicas.reports import (
    FENCED_LEADER_EPOCH,
    KAFKA_STORAGE_ERROR,
    STALE_CONTROLLER_EPOCH,
    UNKNOWN_TOPIC_OR_PARTITION,
    Reports,
    is_still_true,
    log_end_of,
)
from brokers.mock.replicas.topic_settings import TopicSettings
from brokers.mock.replicas.waiting import wake
from brokers.mock.settings import Settings
from brokers.wire.errors import ErrorCode, RefusedError
from bus.clock import steady_ms
from state.decisions import (
    Answer,
    AnyDecision,
    ConfigDecision,
    HighWatermark,
    LeaderAndIsr,
    StopReplica,
    TopicDecision,
)
from state.events import TopicPartition
from state.ids import EPOCH_DURING_DELETE, NO_EPOCH, NO_LEADER

logger = structlog.get_logger()


class Replicas:
    """The replicas by partition. They carry out a decision after ``Metadata`` has taken it in."""

    def __init__(
        self, broker: int, directory: LogDirectory, metadata: Metadata, outbox: Outbox, settings: Settings
    ) -> None:
        self._broker = broker
        self._directory = directory
        self._metadata = metadata
        self._outbox = outbox
        self._settings = settings
        self._controller_epoch = 0
        self.partitions: dict[TopicPartition, Partition] = {}
        self.isr_changes = IsrChanges(broker, metadata, outbox, settings)
        self.fetchers = Fetchers(broker, metadata, settings, self.log_end_changed)
        self.topics = TopicSettings(metadata, settings)
        self._reports = Reports(broker, outbox)
        self._crash_reports = CrashReports(broker, directory, metadata, self.topics, outbox)
        outbox.log_end_of = self._log_end
        outbox.is_still_true = lambda report: is_still_true(report, self.partitions)
        outbox.report_log_again = lambda place: self._crash_reports.again(place, self.partitions.get(place))

    def set_broker_epoch(self, broker_epoch: int) -> None:
        """Send everything under this registration from now on.

        The engine has forgotten the reports under a former registration, so they are sent again.
        """
        if broker_epoch == self._outbox.broker_epoch:
            return
        self._outbox.registered(broker_epoch)
        self._reports.broker_epoch = broker_epoch
        self.isr_changes.broker_epoch = broker_epoch
        self.fetchers.set_broker_epoch(broker_epoch)
        for place, held in self.partitions.items():
            if held.role is not Role.none:
                self._reports.done(place, held.topic_id, held.leader_epoch, held.role.value)

    def begin(self) -> None:
        """Begin with the replicas in the metadata."""
        ours = [d for d in self._metadata.all_partitions() if self._broker in d.replicas]
        self._directory.sweep({TopicPartition(d.topic, d.partition): d.topic_id for d in ours})
        for decision in filter(self._crash_reports.is_wanted_at_start, ours):
            place = TopicPartition(decision.topic, decision.partition)
            # A log that cannot be opened is reported as offline below.
            with contextlib.suppress(OSError):
                self._crash_reports.send(decision, self._opened(place, decision.topic_id).log)
        for decision in ours:
            self.apply(decision)
        for partition in [one for one in self.partitions.values() if one.leader_epoch == NO_EPOCH]:
            # Its decision was refused as one of an older controller.
            self._close(partition)

    def apply(self, decision: AnyDecision) -> None:
        """Carry out a decision, unless it is of an older controller."""
        if decision.controller_epoch < self._controller_epoch:
            logger.warning("decision of an older controller refused", kind=type(decision).__name__)
            if isinstance(decision, LeaderAndIsr | StopReplica) and self._broker in decision.to:
                self._reports.refused(decision, STALE_CONTROLLER_EPOCH)
            return
        self._controller_epoch = decision.controller_epoch
        match decision:
            case LeaderAndIsr() if self._broker in decision.replicas:
                self._leader_and_isr(decision)
            case LeaderAndIsr() if self._broker in decision.to:
                self._reports.refused(decision, UNKNOWN_TOPIC_OR_PARTITION)
            case StopReplica() if self._broker in decision.to:
                self._stop_replica(decision)
            case HighWatermark():
                held = self.partitions.get(TopicPartition(decision.topic, decision.partition))
                if held is not None:
                    held.set_high_watermark(decision.leader_epoch, decision.high_watermark)
            case TopicDecision(state="deleted"):
                self._gone(decision.topic_id)
            case TopicDecision():
                self._configured(decision.topic)
            case ConfigDecision(entity="topic" | "cluster"):
                self._configured(decision.name)
            case Answer(request="alter_isr"):
                self.isr_changes.answered(decision)

    def skip(self, decision: AnyDecision) -> None:
        """Skip a decision that a later one makes needless.

        If the decision changes the replica's role, the former role and term end, as if it were carried out.
        """
        if not isinstance(decision, LeaderAndIsr) or decision.controller_epoch < self._controller_epoch:
            return
        self._controller_epoch = decision.controller_epoch
        held = self.partitions.get(TopicPartition(decision.topic, decision.partition))
        if held is None or held.topic_id != decision.topic_id or held.supersedes(decision):
            return
        if held.role is not (Role.leader if decision.leader == self._broker else Role.follower):
            self.fetchers.remove(held)
            held.stop()

    def _leader_and_isr(self, decision: LeaderAndIsr) -> None:
        place = TopicPartition(decision.topic, decision.partition)
        held = self.partitions.get(place)
        if held is not None and held.topic_id == decision.topic_id and held.supersedes(decision):
            self._reports.refused(decision, STALE_CONTROLLER_EPOCH)
            return
        try:
            partition = self._opened(place, decision.topic_id)
            before = (partition.role, partition.leader, partition.leader_epoch)
            self._take_role(partition, decision)
        except OSError as error:
            logger.exception("replica offline", partition=name_of(place))
            self._reports.offline(place, decision.topic_id, decision.leader_epoch)
            if (half_done := self.partitions.get(place)) is not None:
                self._close(half_done)
            self._directory.lost(error)
            return
        if before != (partition.role, partition.leader, partition.leader_epoch):
            logger.info(
                "leads" if partition.is_leader else "follows",
                partition=name_of(place),
                leader=decision.leader,
                leader_epoch=decision.leader_epoch,
                isr=decision.isr,
                log_end_offset=partition.log.log_end_offset,
            )
            self._reports.done(place, decision.topic_id, decision.leader_epoch, partition.role.value)
        self.log_end_changed(partition)
        self._crash_reports.decided(decision, partition.log)
        if partition.recovering:
            self.isr_changes.consider_shrinking(partition)

    def _take_role(self, partition: Partition, decision: LeaderAndIsr) -> None:
        before = (partition.role, partition.leader, partition.leader_epoch)
        high_watermark = self._metadata.high_watermark(partition.place)
        if decision.leader == self._broker:
            self.fetchers.remove(partition)
            partition.make_leader(decision, high_watermark, steady_ms())
            return
        partition.make_follower(decision, high_watermark)
        if before != (Role.follower, decision.leader, decision.leader_epoch):
            self.fetchers.remove(partition)
            if decision.leader != NO_LEADER:
                self.fetchers.add(partition)

    def _opened(self, place: TopicPartition, topic_id: str) -> Partition:
        held = self.partitions.get(place)
        if held is not None and held.topic_id == topic_id:
            return held
        if held is not None:
            self._close(held)
        log = self._directory.open_log(place, topic_id, self.topics.log_config(place.topic))
        partition = self.partitions[place] = Partition(place, topic_id, self._broker, log)
        return partition

    def _stop_replica(self, decision: StopReplica) -> None:
        place = TopicPartition(decision.topic, decision.partition)
        held = self.partitions.get(place)
        ours = held if held is not None and held.topic_id == decision.topic_id else None
        if ours is not None and EPOCH_DURING_DELETE != decision.leader_epoch < ours.leader_epoch:
            self._reports.refused(decision, FENCED_LEADER_EPOCH)
            return
        try:
            if decision.delete:
                if ours is not None:
                    self._close(ours)
                self._directory.delete(place, decision.topic_id)
            elif ours is not None:
                self.fetchers.remove(ours)
                ours.stop()
        except OSError as error:
            logger.exception("replica not stopped", partition=name_of(place))
            self._reports.refused(decision, KAFKA_STORAGE_ERROR)
            self._directory.lost(error)
            return
        outcome = "deleted" if decision.delete else "stopped"
        logger.info(outcome, partition=name_of(place))
        self._reports.done(place, decision.topic_id, decision.leader_epoch, outcome)

    def _gone(self, topic_id: str) -> None:
        """Drop the rest of a deleted topic, because a restarted broker opens replicas that it reported as deleted."""
        for partition in [p for p in self.partitions.values() if p.topic_id == topic_id]:
            self._close(partition)
            try:
                self._directory.delete(partition.place, topic_id)
            except OSError:
                logger.exception("replica not removed", partition=name_of(partition.place))

    def _close(self, partition: Partition) -> None:
        self.fetchers.remove(partition)
        partition.stop()
        partition.log.close()
        self.isr_changes.forget(partition.place)
        self._outbox.forget(partition.place)
        del self.partitions[partition.place]

    def _configured(self, topic: str | None) -> None:
        """Give a topic's logs their present settings. None stands for all topics, after a change for the cluster."""
        for place, partition in self.partitions.items():
            if topic in (None, place.topic):
                partition.log.config = self.topics.log_config(place.topic)
                wake(partition.waiters)

    # For the APIs

    def leader_of(self, place: TopicPartition, current_leader_epoch: int = -1) -> Partition:
        """Return the partition if this broker leads it in that epoch (-1: any). Raises ``RefusedError`` otherwise."""
        if self._directory.is_lost:
            raise RefusedError(ErrorCode.KAFKA_STORAGE_ERROR, "the log directory is offline")
        partition = self.partitions.get(place)
        if partition is None:
            known = self._metadata.partition(place) is not None
            raise RefusedError(ErrorCode.NOT_LEADER_OR_FOLLOWER if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        partition.check_epoch(current_leader_epoch)
        if not partition.is_leader:
            raise RefusedError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return partition

    def fetched(self, partition: Partition, replica: int, offset: int, replica_epoch: int) -> None:
        """Note a follower's fetch, after which the follower may be due to join the ISR."""
        follower = partition.followers.get(replica)
        if follower is None:
            raise RefusedError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"broker {replica} is not assigned")
        follower.fetched(offset, partition.log.log_end_offset, replica_epoch, steady_ms())
        self.isr_changes.consider_expanding(partition, replica)

    def log_end_changed(self, partition: Partition) -> None:
        """Report the log end of a replica soon."""
        self._outbox.log_end_changed(partition.place)

    def look_after_isr(self) -> None:
        """Find members that lag. Call this regularly."""
        for partition in self.partitions.values():
            self.isr_changes.consider_shrinking(partition)

    def checkpoint(self) -> None:
        """Write the high watermarks to disk. If that fails, the directory is lost."""
        try:
            self._directory.checkpoint_high_watermarks({p.place: p.high_watermark for p in self.partitions.values()})
        except OSError as error:
            self._directory.lost(error)

    def report_offline(self) -> None:
        """Report the logs of all replicas as lost."""
        for partition in self.partitions.values():
            self._reports.offline(partition.place, partition.topic_id, partition.leader_epoch)
            self.fetchers.remove(partition)
            partition.stop()

    def close(self) -> None:
        """Force everything to disk."""
        for partition in self.partitions.values():
            partition.log.flush()
        self.checkpoint()
        for partition in list(self.partitions.values()):
            partition.log.close()

    def _log_end(self, place: TopicPartition) -> LogEnd | None:
        partition = self.partitions.get(place)
        return None if partition is None else log_end_of(partition, self._metadata)
