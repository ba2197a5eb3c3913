"""The ISR at its leader: members that lag, followers that may join, and requests to change it (KIP-497)."""

import uuid
from typing import NamedTuple

import structlog

from brokers.mock.control.outbox import Outbox
from brokers.mock.metadata import Metadata
from brokers.mock.replicas.partition import Partition, name_of
from brokers.mock.settings import Settings
from bus.clock import now_ms, steady_ms
from state.decisions import Answer
from state.events import AlterIsr, TopicPartition

logger = structlog.get_logger()


def out_of_sync(partition: Partition, now: int, lag_max_ms: int) -> tuple[int, ...]:
    """List the members that have not been caught up for too long (``Partition.getOutOfSyncReplicas``)."""
    end = partition.log.log_end_offset
    return tuple(
        replica
        for replica in partition.isr
        if (follower := partition.followers.get(replica)) is not None
        and not follower.is_caught_up(end, now, lag_max_ms)
    )


def may_join(partition: Partition, replica: int, reported_end_offset: int) -> bool:
    """Return whether an assigned follower outside the ISR holds everything that a member must hold.

    As in Kafka, it must reach the high watermark and the start of the leader's epoch. It must also reach the leader's
    log end as last reported to the engine, because the engine decides no high watermark above that before the new
    member is in. The high watermark that this broker has *heard* of is not enough: more may have been committed since,
    and the new member would lack it.
    """
    follower = partition.followers.get(replica)
    if follower is None or replica in partition.isr:
        return False
    return follower.log_end_offset >= max(
        partition.high_watermark, partition.epoch_start_offset, reported_end_offset, 0
    )


class _InFlight(NamedTuple):
    request_id: str
    leader_epoch: int
    partition_epoch: int
    until_ms: int


class IsrChanges:
    """The requests to the engine for ISR changes: at most one per partition is outstanding, for a bounded time.

    The ISR changes only when the committed decision arrives. After a refused request, the partition pauses for a while.
    """

    def __init__(self, broker: int, metadata: Metadata, outbox: Outbox, settings: Settings) -> None:
        self._broker = broker
        self._metadata = metadata
        self._outbox = outbox
        self._settings = settings
        self._in_flight: dict[TopicPartition, _InFlight] = {}
        self._not_before: dict[TopicPartition, int] = {}
        self.broker_epoch = -1

    def consider_shrinking(self, partition: Partition) -> None:
        """Ask to remove the members that lag. A leader from an unclean election reports that it has recovered."""
        if not partition.is_leader or self._outstanding(partition):
            return
        gone = out_of_sync(partition, steady_ms(), self._settings.replica_lag_time_max_ms)
        if gone:
            isr = tuple(replica for replica in partition.isr if replica not in gone)
            self._ask(partition, isr, "shrink")
        elif partition.recovering:
            self._ask(partition, partition.isr, "recovered")

    def consider_expanding(self, partition: Partition, replica: int) -> None:
        """Ask to add a follower that has just fetched, if it may join."""
        if replica in partition.isr or not partition.is_leader or self._outstanding(partition):
            return
        reported = self._outbox.reported_end_offset(partition.place, partition.leader_epoch)
        if reported is None or not may_join(partition, replica, reported):
            return
        known = self._metadata.brokers.get(replica)
        if known is None or known.state != "active":
            return
        if partition.followers[replica].replica_epoch not in (known.broker_epoch, -1):
            return  # the fetch came from an earlier incarnation of the follower (KIP-903)
        joined = {*partition.isr, replica}
        self._ask(partition, tuple(r for r in partition.replicas if r in joined), "expand")

    def _outstanding(self, partition: Partition) -> bool:
        now = steady_ms()
        request = self._in_flight.get(partition.place)
        if request is not None:
            epochs = (partition.leader_epoch, partition.partition_epoch)
            if (request.leader_epoch, request.partition_epoch) == epochs and now < request.until_ms:
                return True
            # The request was decided, or was lost. If it arrives late, its partition epoch fences it.
            del self._in_flight[partition.place]
        return now < self._not_before.get(partition.place, 0)

    def _ask(self, partition: Partition, isr: tuple[int, ...], what: str) -> None:
        request_id = uuid.uuid4().hex
        epochs = tuple(known.broker_epoch if (known := self._metadata.brokers.get(r)) else -1 for r in isr)
        self._in_flight[partition.place] = _InFlight(
            request_id,
            partition.leader_epoch,
            partition.partition_epoch,
            steady_ms() + self._settings.alter_isr_timeout_ms,
        )
        self._outbox.send(
            AlterIsr(
                time_ms=now_ms(),
                request_id=request_id,
                topic=partition.place.topic,
                topic_id=partition.topic_id,
                partition=partition.place.partition,
                broker=self._broker,
                broker_epoch=self.broker_epoch,
                leader_epoch=partition.leader_epoch,
                partition_epoch=partition.partition_epoch,
                isr=isr,
                isr_epochs=epochs,
                leader_recovery_state="RECOVERED",
            )
        )
        logger.info("isr change requested", what=what, partition=name_of(partition.place), now=partition.isr, then=isr)

    def answered(self, answer: Answer) -> None:
        """Note the answer to one of these requests. A granted request's ``leader_and_isr`` came before the answer."""
        place = next((p for p, request in self._in_flight.items() if request.request_id == answer.request_id), None)
        if place is None:
            return
        del self._in_flight[place]
        if answer.error != "NONE":
            self._not_before[place] = steady_ms() + self._settings.alter_isr_backoff_ms
            logger.info("isr change refused", partition=name_of(place), error=answer.error, message=answer.message)

    def forget(self, place: TopicPartition) -> None:
        """Drop the requests for a replica that is gone."""
        self._in_flight.pop(place, None)
        self._not_before.pop(place, None)
