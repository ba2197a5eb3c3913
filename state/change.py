"""What a rule wants of a partition: only the fields that it sets."""

import msgspec

from state.partition import LeaderRecoveryState, PartitionState, RemovedReplica, ReplicaState


class PartitionChange(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Hold a change to one partition; a field that is None stays as it is.

    Mirrors Kafka's ``PartitionChangeRecord``. Epochs are not in it: ``apply`` alone adds to them.
    ``replica_states`` stands in the order of ``replicas`` after the change. ``unclean`` is said by
    the election. ``by_leader`` marks what a leader asked for and the controller accepted (KIP-497).
    """

    state: PartitionState | None = None
    leader: int | None = None
    isr: tuple[int, ...] | None = None
    leader_recovery_state: LeaderRecoveryState | None = None
    replicas: tuple[int, ...] | None = None
    adding_replicas: tuple[int, ...] | None = None
    removing_replicas: tuple[int, ...] | None = None
    replica_states: tuple[ReplicaState, ...] | None = None
    removed: tuple[RemovedReplica, ...] | None = None
    offline_dir_replicas: tuple[int, ...] | None = None
    unassigned_replicas: tuple[int, ...] | None = None
    unclean: bool = False
    by_leader: bool = False
