"""Where epochs go up, and where they do not."""

import pytest
from msgspec.structs import replace

from controller_logic.apply import apply
from state.change import PartitionChange
from state.partition import LeaderRecoveryState, Partition, PartitionState, ReplicaLag, ReplicaState

ONLINE, OFFLINE = ReplicaState.OnlineReplica, ReplicaState.OfflineReplica
FOO = Partition(
    0,
    PartitionState.OnlinePartition,
    (1, 2, 3),
    (ONLINE, ONLINE, ONLINE),
    isr=(1, 2),
    leader=1,
    leader_epoch=4,
    partition_epoch=9,
    high_watermark=7,
    high_watermark_epoch=4,
    log_end_offsets=(8, 7, 6),
    offset_epochs=(4, 4, 3),
)


@pytest.mark.parametrize(
    ("change", "leader_epoch", "partition_epoch"),
    [
        (PartitionChange(), 4, 9),
        (PartitionChange(leader=1, isr=(1, 2)), 4, 9),
        (PartitionChange(replica_states=(ONLINE, OFFLINE, ONLINE)), 4, 9),
        (PartitionChange(leader=2), 5, 10),
        (PartitionChange(isr=(1,)), 5, 10),
        (PartitionChange(leader=2, isr=(2,)), 5, 10),
        (PartitionChange(adding_replicas=(3,)), 5, 10),
        (PartitionChange(removing_replicas=(3,)), 5, 10),
        (PartitionChange(replicas=(2, 1, 3)), 5, 10),
        (PartitionChange(isr=(1,), by_leader=True), 4, 10),
        (PartitionChange(leader_recovery_state=LeaderRecoveryState.RECOVERING, by_leader=True), 4, 10),
        (PartitionChange(isr=(1, 2), by_leader=True), 4, 9),
        (PartitionChange(raises_epochs=True), 5, 10),
    ],
)
def test_one_change_raises_each_epoch_at_most_once(
    change: PartitionChange, leader_epoch: int, partition_epoch: int
) -> None:
    after = apply(FOO, change)
    assert (after.leader_epoch, after.partition_epoch) == (leader_epoch, partition_epoch)


def test_without_a_change_the_partition_is_the_same_object() -> None:
    assert apply(FOO, PartitionChange()) == FOO


def test_a_clean_change_keeps_the_epoch_of_the_high_watermark() -> None:
    assert apply(FOO, PartitionChange(leader=2)).high_watermark_epoch == 4


def test_an_unclean_election_clears_the_epoch_of_the_high_watermark() -> None:
    after = apply(FOO, PartitionChange(leader=3, isr=(3,), unclean=True))
    assert (after.high_watermark, after.high_watermark_epoch) == (7, -1)


def test_a_partition_without_offsets_may_move_too() -> None:
    before = replace(FOO, log_end_offsets=(), offset_epochs=())
    assert apply(before, PartitionChange(replicas=(2, 1, 5))).log_end_offsets == ()


def test_offsets_move_with_their_replicas() -> None:
    states = (ONLINE, ONLINE, ONLINE)
    after = apply(FOO, PartitionChange(replicas=(5, 2, 1), replica_states=states))
    assert (after.log_end_offsets, after.offset_epochs) == ((-1, 7, 8), (-1, 4, 4))


def test_lags_move_with_their_replicas() -> None:
    none, second, third = ReplicaLag(), ReplicaLag(50, 60, 8), ReplicaLag(-1, 70, 8)
    before = replace(FOO, lags=(none, second, third))
    states = (ONLINE, ONLINE, ONLINE)
    assert apply(before, PartitionChange(replicas=(3, 5, 2), replica_states=states)).lags == (third, none, second)
    assert apply(before, PartitionChange(isr=(1,))).lags == before.lags
