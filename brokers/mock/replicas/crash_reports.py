"""The logs that a broker reports while their replicas follow no leader (``replica_log``).

When it starts, the broker reports each log that may be complete or elected, before any replica follows a leader. A
replica that runs while the last one is lost that may lead reports its log then: it follows no leader from there on.
"""

from brokers.mock.control.outbox import Outbox
from brokers.mock.log.directory import LogDirectory
from brokers.mock.log.log import Log
from brokers.mock.metadata import Metadata
from brokers.mock.replicas.partition import Partition
from brokers.mock.replicas.topic_settings import TopicSettings
from bus.clock import now_ms
from state.decisions import LeaderAndIsr
from state.events import ReplicaLog, TopicPartition
from state.features import ELIGIBLE_LEVEL
from state.ids import NO_LEADER


class CrashReports:
    """What was reported of logs, under which broker epoch and in which leader epoch."""

    def __init__(
        self, broker: int, directory: LogDirectory, metadata: Metadata, topics: TopicSettings, outbox: Outbox
    ) -> None:
        self._broker = broker
        self._directory = directory
        self._metadata = metadata
        self._topics = topics
        self._outbox = outbox
        self._told: dict[TopicPartition, tuple[int | None, int]] = {}

    def is_wanted_at_start(self, decision: LeaderAndIsr) -> bool:
        """Return whether a log may matter: too few replicas are in sync to commit without it."""
        needed = min(self._topics.min_insync_replicas(decision.topic), len(decision.replicas))
        is_small = len(decision.isr) < needed or decision.elr or decision.last_known_elr
        return self._metadata.level >= ELIGIBLE_LEVEL and bool(is_small)

    def decided(self, decision: LeaderAndIsr, log: Log) -> None:
        """Report a log if no replica is left that may lead."""
        is_left = decision.leader != NO_LEADER or decision.isr or decision.elr
        if self._metadata.level >= ELIGIBLE_LEVEL and not is_left:
            self.send(decision, log)

    def again(self, place: TopicPartition, held: Partition | None) -> None:
        """Report a log whose report was refused, if it still follows no leader."""
        decision = self._metadata.partition(place)
        if held is not None and decision is not None and decision.leader == NO_LEADER:
            self._told.pop(place, None)
            self.send(decision, held.log)

    def send(self, decision: LeaderAndIsr, log: Log) -> None:
        """Report a log, once in a leader epoch."""
        place = TopicPartition(decision.topic, decision.partition)
        key = (self._outbox.broker_epoch, decision.leader_epoch)
        if self._outbox.broker_epoch is None or self._told.get(place) == key:
            return
        self._told[place] = key
        self._outbox.send(
            ReplicaLog(
                time_ms=now_ms(),
                topic=decision.topic,
                topic_id=decision.topic_id,
                partition=decision.partition,
                broker=self._broker,
                broker_epoch=self._outbox.broker_epoch,
                last_written_epoch=log.last_written_epoch,
                log_end_offset=log.log_end_offset,
                high_watermark=self._directory.high_watermarks.get(place, 0),
                directory=str(self._directory.path.resolve()),
            )
        )
