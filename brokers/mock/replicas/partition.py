"""One replica on this broker, leading or following (Kafka's ``Partition``).

    role       make_leader                make_follower             stop
    none       leader, term + 1           follower                  none
    leader     leader (same term)         follower, term + 1        none, term + 1
    follower   leader, term + 1           follower                  none

A ``term`` is one stretch of leading. A record that was appended in one term may be gone in the next.
"""

from enum import Enum

from brokers.mock.log.log import Appended, Log
from brokers.mock.replicas.follower import FollowerState
from brokers.mock.replicas.waiting import Waiters, wake
from brokers.wire.errors import ErrorCode, RefusedError
from state.decisions import LeaderAndIsr
from state.events import TopicPartition
from state.ids import NO_EPOCH, NO_LEADER


def name_of(place: TopicPartition) -> str:
    """Return the name of a partition, for the log."""
    return f"{place.topic}-{place.partition}"


class Role(Enum):
    """A broker's role for a partition of which it holds the log."""

    none = "none"
    leader = "leader"
    follower = "follower"


class Partition:
    """One replica: its log, its role, and the content of the last accepted decision.

    The engine decides the high watermark, and this broker never computes it. Clients see it only up to the log's end.
    """

    def __init__(self, place: TopicPartition, topic_id: str, broker: int, log: Log) -> None:
        self.place = place
        self.topic_id = topic_id
        self.broker = broker
        self.log = log
        self.role = Role.none
        self.term = 0
        self.leader = NO_LEADER
        self.leader_epoch = NO_EPOCH
        self.partition_epoch = NO_EPOCH
        self.isr: tuple[int, ...] = ()
        self.replicas: tuple[int, ...] = ()
        self.recovering = False
        self.epoch_start_offset = 0
        self.followers: dict[int, FollowerState] = {}
        self.waiters: Waiters = {}
        self._truncated_in = NO_EPOCH
        self._decided_high_watermark = 0

    @property
    def high_watermark(self) -> int:
        return min(self._decided_high_watermark, self.log.log_end_offset)

    @property
    def is_leader(self) -> bool:
        return self.role is Role.leader

    @property
    def reporting_epoch(self) -> int | None:
        """The leader epoch under which the log end may be sent to the engine; None if it may not.

        A follower's log counts for an epoch only once it was cut to where it agrees with that epoch's leader. Before
        that it may end with records that the leader never had.
        """
        if self.role is Role.none or (self.role is Role.follower and self._truncated_in != self.leader_epoch):
            return None
        return self.leader_epoch

    def supersedes(self, decision: LeaderAndIsr) -> bool:
        """Return whether this replica's state is newer than ``decision``."""
        return (self.leader_epoch, self.partition_epoch) > (decision.leader_epoch, decision.partition_epoch)

    def make_leader(self, decision: LeaderAndIsr, high_watermark: int, now_ms: int) -> None:
        """Lead, or continue to lead with another ISR or in a later epoch."""
        raised = decision.leader_epoch > self.leader_epoch
        if not self.is_leader:
            self.role = Role.leader
            self.term += 1
            # After an unclean election the decided value may be above this log's end. Without the limit, new records
            # would appear committed because other records at their offsets were.
            self._decided_high_watermark = min(high_watermark, self.log.log_end_offset)
        self._hold(decision)
        if raised:
            self.log.begin_epoch(decision.leader_epoch)
            self.epoch_start_offset = self.log.log_end_offset
            self.followers.clear()
        assigned = {replica for replica in self.replicas if replica != self.broker}
        for replica in assigned - self.followers.keys():
            self.followers[replica] = FollowerState(now_ms if replica in self.isr else 0)
        for replica in self.followers.keys() - assigned:
            del self.followers[replica]
        wake(self.waiters)

    def make_follower(self, decision: LeaderAndIsr, high_watermark: int) -> None:
        """Follow ``decision.leader``. Later the log is cut to agree with the leader's."""
        if self.is_leader:
            self.term += 1
        if self.role is not Role.follower:
            self._decided_high_watermark = high_watermark
        self.role = Role.follower
        self.followers.clear()
        self._hold(decision)
        wake(self.waiters)

    def _hold(self, decision: LeaderAndIsr) -> None:
        self.leader = decision.leader
        self.leader_epoch = decision.leader_epoch
        self.partition_epoch = decision.partition_epoch
        self.isr = decision.isr
        self.replicas = decision.replicas
        self.recovering = decision.leader_recovery_state == "RECOVERING"

    def stop(self) -> None:
        """Neither lead nor follow, and wake the requests that wait."""
        if self.is_leader:
            self.term += 1
        self.role = Role.none
        self.followers.clear()
        wake(self.waiters)

    def set_high_watermark(self, leader_epoch: int, high_watermark: int) -> None:
        """Note a decided high watermark, unless its epoch is older than this replica's.

        Its epoch may be later if the decision that began it was skipped, because a newer decision follows.
        """
        if leader_epoch >= self.leader_epoch:
            self._decided_high_watermark = high_watermark
            wake(self.waiters)

    def follow_high_watermark(self, leader_epoch: int, high_watermark: int) -> None:
        """Note the leader's high watermark, because after a truncation the log grows back to the decided one."""
        if self.role is Role.follower and leader_epoch == self.leader_epoch:
            self._decided_high_watermark = max(self._decided_high_watermark, high_watermark)

    def check_epoch(self, current_leader_epoch: int) -> None:
        """Refuse a request from another leader epoch; -1 asks for no check (KIP-320)."""
        if current_leader_epoch == NO_EPOCH:
            return
        if current_leader_epoch < self.leader_epoch:
            raise RefusedError(ErrorCode.FENCED_LEADER_EPOCH, f"{current_leader_epoch} < {self.leader_epoch}")
        if current_leader_epoch > self.leader_epoch:
            raise RefusedError(ErrorCode.UNKNOWN_LEADER_EPOCH, f"{current_leader_epoch} > {self.leader_epoch}")

    def append_as_leader(self, records: bytes | memoryview | None) -> Appended:
        """Append a producer's records. Raises ``RefusedError``."""
        if not self.is_leader:
            raise RefusedError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        appended = self.log.append_as_leader(records, self.leader_epoch)
        wake(self.waiters)
        return appended

    def append_as_follower(self, leader_epoch: int, offset: int, records: bytes | memoryview) -> bool:
        """Append what the leader of ``leader_epoch`` sent for ``offset``. Return False if that no longer fits."""
        fits = self.role is Role.follower and leader_epoch == self.leader_epoch and offset == self.log.log_end_offset
        if fits:
            self.log.append_as_follower(records)
        return fits

    def truncate(self, leader_epoch: int, offset: int) -> bool:
        """Cut the follower's log to ``offset``. Return False if it is in another epoch by now."""
        if self.role is not Role.follower or leader_epoch != self.leader_epoch:
            return False
        self.log.truncate_to(offset)
        self._decided_high_watermark = min(self._decided_high_watermark, max(offset, self.log.log_end_offset))
        return True

    def restart_at(self, leader_epoch: int, offset: int) -> bool:
        """Empty the follower's log, and continue at ``offset``. Return False if it is in another epoch by now."""
        if self.role is not Role.follower or leader_epoch != self.leader_epoch:
            return False
        self.log.restart_at(offset)
        return True

    def truncated(self, leader_epoch: int) -> None:
        """Note that the log agrees with that of the leader of ``leader_epoch``."""
        self._truncated_in = leader_epoch
