"""What a rule decides about a partition: a change that is not applied yet."""

from collections.abc import Set

import msgspec

from state.partition import LeaderRecoveryState, PartitionState, RemovedReplica, ReplicaState, ReportedLog


class PartitionChange(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A change to one partition. A field that is None stays as it is.

    Mirrors Kafka's ``PartitionChangeRecord``. It has no epochs, because ``apply`` alone raises them.
    """

    state: PartitionState | None = None
    leader: int | None = None
    isr: tuple[int, ...] | None = None
    leader_recovery_state: LeaderRecoveryState | None = None
    replicas: tuple[int, ...] | None = None
    adding_replicas: tuple[int, ...] | None = None
    removing_replicas: tuple[int, ...] | None = None
    # In the order of ``replicas`` after the change.
    replica_states: tuple[ReplicaState, ...] | None = None
    removed: tuple[RemovedReplica, ...] | None = None
    lost_logs: tuple[int, ...] | None = None
    # In the order of ``replicas`` after the change, each an id or ``directories.NO_DIRECTORY``.
    directories: tuple[str, ...] | None = None
    # ``commit`` sets these three, from the whole change.
    elr: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None
    former_members: tuple[int, ...] | None = None
    # The replicas whose log may have lost committed records.
    unproven: Set[int] = frozenset()
    # Those of them whose log can only be shorter than it was, because it is the one that a crashed process left.
    crashed: Set[int] = frozenset()
    # The former members whose log has proved to have every committed record.
    proven: Set[int] = frozenset()
    # The logs that the election compared.
    compared: tuple[ReportedLog, ...] = ()
    # Set by the election itself: whether committed records may be lost.
    unclean: bool = False
    # Set by the election itself: whether the leader was outside the ISR, and has every committed record.
    eligible: bool = False
    # The ISR from which the leader was elected, if it is not the one before the change.
    elected_from: tuple[int, ...] | None = None
    # The leader asked for it, so its leader epoch stays (KIP-497).
    by_leader: bool = False
    # The leader acts on another ISR than this one, so the epochs rise even if nothing differs.
    raises_epochs: bool = False
