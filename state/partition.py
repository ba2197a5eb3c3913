"""A partition, its replicas, and the topic that they belong to.

The record of a partition is all that the controller knows of it. Three groups of fields say three things:

    the decision       leader, isr, replicas, ...         what brokers were told; every change raises partition_epoch
    the two machines   state, replica_states, removed     where Kafka's state machines stand
    the reports        log_end_offsets, lags, ..._epochs  what brokers said since, one entry a replica

Entries about replicas are tuples in the order of ``replicas``. A tuple of reports is empty until the first report.
Rejected: sets and maps of replicas, because their order would become part of a decision.

Values are stored as arrays, so a new field goes to the end and gets a default.
"""

from collections.abc import Sequence
from enum import IntEnum

import msgspec

from state.ids import NO_EPOCH, NO_LEADER, NO_TIME, UNKNOWN_OFFSET


class PartitionState(IntEnum):
    """Kafka's partition states; a member's name is Kafka's word."""

    NonExistentPartition = 0
    NewPartition = 1
    OnlinePartition = 2
    OfflinePartition = 3


class ReplicaState(IntEnum):
    """Kafka's replica states; a member's name is Kafka's word."""

    NonExistentReplica = 0
    NewReplica = 1
    OnlineReplica = 2
    OfflineReplica = 3
    ReplicaDeletionStarted = 4
    ReplicaDeletionSuccessful = 5
    ReplicaDeletionIneligible = 6


class LeaderRecoveryState(IntEnum):
    """Whether the leader was elected uncleanly and has yet to say that it recovered (KIP-704)."""

    RECOVERED = 0
    RECOVERING = 1


class TopicState(IntEnum):
    """The life of a topic: created, then its replicas are deleted (``ineligible``: not all can be yet), then gone."""

    created = 0
    deleting = 1
    ineligible = 2
    deleted = 3


class RemovedReplica(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A replica that is no longer assigned, and whose broker has yet to remove the log."""

    broker: int
    # The last leader epoch in which it was assigned. Only a report in a later epoch counts as a report of its deletion.
    leader_epoch: int
    state: ReplicaState


class ReplicaLag(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How far a follower is behind its leader (``ReplicaState`` in Kafka's ``Replica``), by the engine's clock."""

    # When it last had everything that its leader had.
    caught_up_time_ms: int = NO_TIME
    # When it last reported its log's end.
    report_time_ms: int = NO_TIME
    # The greatest known end of the leader's log at that report.
    leader_end_offset: int = UNKNOWN_OFFSET


class ReportedLog(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A replica's log while it followed no leader, as its broker reported it."""

    broker: int
    # The report counts only while the broker is registered in this epoch.
    broker_epoch: int
    # The leader epoch of its last record; NO_EPOCH if it has none.
    last_written_epoch: int
    log_end_offset: int


class Partition(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One partition. ``state.invariants`` checks what must hold between its fields."""

    # Its place in Topic.partitions.
    partition: int
    # OnlinePartition ⟺ leader ≠ NO_LEADER
    state: PartitionState
    # In order of preference, distinct. While it is reassigned: target ++ removing_replicas (KIP-455).
    replicas: tuple[int, ...]
    # One for each replica.
    replica_states: tuple[ReplicaState, ...]
    # isr ⊆ replicas, distinct; not empty once a leader was elected, unless elr or last_known_elr says who can lead.
    isr: tuple[int, ...] = ()
    # leader = NO_LEADER or leader ∈ isr
    leader: int = NO_LEADER
    # Rises by one with each change of the decision that the leader did not ask for; NO_EPOCH before the first leader.
    leader_epoch: int = NO_EPOCH
    # Rises by one with each change of the decision.
    partition_epoch: int = NO_EPOCH
    # RECOVERING ⟹ |isr| = 1; only an unclean election begins it.
    leader_recovery_state: LeaderRecoveryState = LeaderRecoveryState.RECOVERED
    # adding ⊆ replicas
    adding_replicas: tuple[int, ...] = ()
    # removing ⊆ replicas, adding ∩ removing = ∅
    removing_replicas: tuple[int, ...] = ()
    # Never falls while high_watermark_epoch stays.
    high_watermark: int = 0
    # The leader epoch in which it was derived. NO_EPOCH: not derived yet, or the leader began with a shorter log.
    high_watermark_epoch: int = NO_EPOCH
    # Where each replica's log ends, as last reported. Counts only where offset_epochs[i] = leader_epoch.
    log_end_offsets: tuple[int, ...] = ()
    # The leader epoch of each of these reports.
    offset_epochs: tuple[int, ...] = ()
    # broker ∉ replicas for each of them.
    removed: tuple[RemovedReplica, ...] = ()
    # The newest leader epoch in which each replica reported that it leads or follows.
    completed_epochs: tuple[int, ...] = ()
    # The newest leader epoch of a decision to each replica's broker. A newer request replaces an unanswered one.
    requested_epochs: tuple[int, ...] = ()
    # The newest leader epoch of any report by each replica; empty while it equals completed_epochs.
    received_epochs: tuple[int, ...] = ()
    # Of followers only. An entry counts if the replica's log end offset does.
    lags: tuple[ReplicaLag, ...] = ()
    # While the topic is deleted: the replicas whose log directory is offline. Before that: those whose brokers came
    # back without it while there was no leader. leader ≠ NO_LEADER ⟹ none, because a follower needs no log.
    lost_logs: tuple[int, ...] = ()
    # The log directory of each replica, or ``state.directories.NO_DIRECTORY``; empty while none has one (KIP-858).
    directories: tuple[str, ...] = ()
    # Replicas outside the ISR that have every committed record (KIP-966). elr ⊆ replicas, elr ∩ isr = ∅
    elr: tuple[int, ...] = ()
    # The last leader, or the last ISR member; at most one, and none while there is a leader.
    last_known_elr: tuple[int, ...] = ()
    # Replicas that were in the ISR or eligible until their brokers crashed. Nothing was committed since, so one whose
    # log still reaches the high watermark has every committed record. Disjoint from isr and elr.
    former_members: tuple[int, ...] = ()
    # What an election by logs compares. leader ≠ NO_LEADER ⟹ none, because a follower's log changes.
    reported_logs: tuple[ReportedLog, ...] = ()
    # The least min.insync.replicas that a leader of Kafka may still commit by; 0: the one in force. A leader has read
    # what was set before its leader epoch.
    min_isr_read: int = 0

    @property
    def is_reassigning(self) -> bool:
        """Whether replicas are being added or removed (KIP-455)."""
        return bool(self.adding_replicas or self.removing_replicas)

    @property
    def in_sync(self) -> tuple[int, ...]:
        """The members of the ISR that have their log, in its order. Only these may be elected cleanly."""
        if not self.lost_logs:
            return self.isr
        return tuple([member for member in self.isr if member not in self.lost_logs])

    @property
    def has_eligible(self) -> bool:
        """Whether it has eligible leader replicas, or a last known leader (KIP-966)."""
        return bool(self.elr or self.last_known_elr)

    @property
    def has_more(self) -> bool:
        """Whether it has any of the fields from ``elr`` on."""
        known = self.elr or self.last_known_elr or self.former_members
        return bool(known or self.reported_logs or self.min_isr_read)

    def required_isr(self, min_isr: int) -> int:
        """Return how many in-sync replicas a write with acks=all needs: min.insync.replicas, at most all replicas."""
        return min(min_isr, len(self.replicas))

    @property
    def backlog(self) -> list[int]:
        """The replicas whose newest request is not completed."""
        requested, completed = self.requested_epochs, self.completed_epochs
        behind: list[int] = []
        if requested != completed:
            completed = completed or (NO_EPOCH,) * len(requested)
            for place, epoch in enumerate(requested):
                if epoch > completed[place]:
                    behind.append(self.replicas[place])
        return behind

    def is_behind(self, place: int) -> bool:
        """Return whether the replica at ``place`` of the assignment is in the backlog."""
        if not self.requested_epochs:
            return False
        return self.requested_epochs[place] > (self.completed_epochs[place] if self.completed_epochs else NO_EPOCH)


class Topic(msgspec.Struct, frozen=True, array_like=True):
    """One topic with its partitions."""

    topic: str
    topic_id: str
    state: TopicState
    # The topic's own settings. Values are text, as in Kafka.
    config: dict[str, str]
    # partitions[i].partition = i. A tuple, or read from their bytes one by one (``state.stored.stored_partitions``).
    partitions: Sequence[Partition]
    # Its deletion was asked for, and begins when no partition is reassigned.
    deletion_waits: bool = False

    @property
    def shown_state(self) -> TopicState:
        """The state that decisions show: a deletion that waits is ``ineligible``."""
        return TopicState.ineligible if self.deletion_waits else self.state
