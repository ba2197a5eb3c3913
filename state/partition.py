"""A partition, its replicas, and the topic that they belong to."""

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
    """Whether the leader came from an unclean election and has not yet said that it recovered (KIP-704)."""

    RECOVERED = 0
    RECOVERING = 1


class TopicState(IntEnum):
    """The life of a topic: created, then waiting for its replicas to be deleted, then gone."""

    created = 0
    deleting = 1
    ineligible = 2
    deleted = 3


class RemovedReplica(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Hold a replica that is assigned no more, and whose broker has yet to remove the log.

    ``leader_epoch`` is the last one in which it was assigned: a report of its deletion is of a later one.
    """

    broker: int
    leader_epoch: int
    state: ReplicaState


class ReplicaLag(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Hold when a follower last had all that its leader had (of Kafka's ``ReplicaState`` in ``Replica``).

    Times are on the engine's clock. ``report_time_ms`` is that of its newest report, and
    ``leader_end_offset`` the greatest end of the leader's log that was known by then.
    """

    caught_up_time_ms: int = NO_TIME
    report_time_ms: int = NO_TIME
    leader_end_offset: int = UNKNOWN_OFFSET


class Partition(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Hold one partition.

    isr is a subset of replicas, and never empty once a leader was elected; leader is NO_LEADER or in isr.
    ``replica_states``, ``log_end_offsets``, ``offset_epochs`` and ``lags`` stand in the order of ``replicas``:
    a log end offset, and the lag with it, counts only while its epoch is ``leader_epoch``. ``lags`` are of
    followers, and empty before the first report. ``high_watermark`` never goes back while
    ``high_watermark_epoch`` stays. While the partition is reassigned ``replicas`` begins with its target
    (KIP-455). No broker is both in ``replicas`` and in ``removed``. ``completed_epochs`` are the leader epochs
    in which the replicas last reported that they lead or follow, ``received_epochs`` the newest that any report
    of theirs bore, while one differs (else empty), and ``requested_epochs`` the newest that a decision to their
    brokers had: a newer request takes the place of an older one, however long a broker does not answer.
    ``offline_dir_replicas`` are, while the topic is deleted, those whose log directory is lost, and
    ``unassigned_replicas`` those that a reassignment had removed before.
    """

    partition: int
    state: PartitionState
    replicas: tuple[int, ...]
    replica_states: tuple[ReplicaState, ...]
    isr: tuple[int, ...] = ()
    leader: int = NO_LEADER
    leader_epoch: int = NO_EPOCH
    partition_epoch: int = NO_EPOCH
    leader_recovery_state: LeaderRecoveryState = LeaderRecoveryState.RECOVERED
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    high_watermark: int = 0
    high_watermark_epoch: int = NO_EPOCH
    log_end_offsets: tuple[int, ...] = ()
    offset_epochs: tuple[int, ...] = ()
    removed: tuple[RemovedReplica, ...] = ()
    completed_epochs: tuple[int, ...] = ()
    requested_epochs: tuple[int, ...] = ()
    received_epochs: tuple[int, ...] = ()
    lags: tuple[ReplicaLag, ...] = ()
    offline_dir_replicas: tuple[int, ...] = ()
    unassigned_replicas: tuple[int, ...] = ()

    @property
    def is_reassigning(self) -> bool:
        """Say whether replicas are being added or removed (KIP-455)."""
        return bool(self.adding_replicas or self.removing_replicas)

    @property
    def backlog(self) -> list[int]:
        """Name the replicas whose newest request is not completed."""
        requested, completed = self.requested_epochs, self.completed_epochs
        behind: list[int] = []
        if requested != completed:
            completed = completed or (NO_EPOCH,) * len(requested)
            for place, epoch in enumerate(requested):
                if epoch > completed[place]:
                    behind.append(self.replicas[place])
        return behind

    def is_behind(self, place: int) -> bool:
        """Say whether the replica at ``place`` of the assignment is in the backlog."""
        if not self.requested_epochs:
            return False
        return self.requested_epochs[place] > (self.completed_epochs[place] if self.completed_epochs else NO_EPOCH)


class Topic(msgspec.Struct, frozen=True, array_like=True):
    """Hold one topic; ``partitions[i].partition == i``, and config values are text as in Kafka.

    With ``deletion_waits`` its deletion was asked for and begins when no partition is reassigned.
    """

    topic: str
    topic_id: str
    state: TopicState
    config: dict[str, str]
    partitions: tuple[Partition, ...]
    deletion_waits: bool = False

    @property
    def shown_state(self) -> TopicState:
        """Give the state as it is told: a deletion that waits is held up."""
        return TopicState.ineligible if self.deletion_waits else self.state
