"""A partition as brokers hold it."""

import msgspec

Ids = tuple[int, ...]


class PartitionState(msgspec.Struct, frozen=True, gc=False):
    """A partition (``PartitionRegistration``)."""

    replicas: Ids
    # In the order of ``replicas``.
    directories: tuple[str, ...]
    # isr ⊆ replicas
    isr: Ids
    removing_replicas: Ids
    adding_replicas: Ids
    # leader = -1 or leader ∈ isr
    leader: int
    leader_recovery_state: int
    leader_epoch: int
    partition_epoch: int
