"""Each rule, broken alone."""

from typing import Any

import pytest
from msgspec.structs import replace

from state.invariants import broken_rules, broken_watermark
from state.partition import (
    LeaderRecoveryState,
    Partition,
    PartitionState,
    RemovedReplica,
    ReplicaLag,
    ReplicaState,
)

ONLINE = ReplicaState.OnlineReplica
STARTED = ReplicaState.ReplicaDeletionStarted
GOOD = Partition(
    0,
    PartitionState.OnlinePartition,
    (1, 2, 3),
    (ONLINE,) * 3,
    isr=(1, 2),
    leader=1,
    leader_epoch=4,
    partition_epoch=9,
    high_watermark=7,
    high_watermark_epoch=4,
)


def test_a_valid_change_breaks_no_rule() -> None:
    assert broken_rules(GOOD, GOOD) == []
    assert broken_rules(GOOD, replace(GOOD, leader=2, isr=(2,), leader_epoch=5, partition_epoch=10)) == []
    assert broken_rules(GOOD, replace(GOOD, adding_replicas=(1,), removing_replicas=(2, 3))) == []
    assert broken_rules(GOOD, replace(GOOD, log_end_offsets=(7, 7, 7))) == []


def test_a_leader_recovers_that_was_not_in_the_isr_and_goes_on_to_recover() -> None:
    elected = replace(
        GOOD,
        isr=(3,),
        leader=3,
        leader_epoch=5,
        partition_epoch=10,
        leader_recovery_state=LeaderRecoveryState.RECOVERING,
    )
    assert broken_rules(GOOD, elected) == []
    assert broken_rules(elected, elected) == []


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"isr": (1, 4), "partition_epoch": 10}, "every member of the ISR is an assigned replica"),
        ({"isr": (2,), "partition_epoch": 10}, "the leader is in the ISR"),
        ({"isr": (1, 1), "partition_epoch": 10}, "the members of the ISR, and the replicas, are distinct"),
        ({"replicas": (1, 2, 2)}, "the members of the ISR, and the replicas, are distinct"),
        ({"state": PartitionState.OfflinePartition}, "a partition is online exactly when it has a leader"),
        ({"leader_recovery_state": LeaderRecoveryState.RECOVERING}, "a leader that is recovering is alone in the ISR"),
        (
            {"isr": (1,), "partition_epoch": 10, "leader_recovery_state": LeaderRecoveryState.RECOVERING},
            "a leader that begins to recover was not in the ISR",
        ),
        ({"replica_states": ()}, "every replica has a state"),
        ({"adding_replicas": (4,)}, "replicas that are added or removed are assigned"),
        ({"adding_replicas": (3,), "removing_replicas": (3,)}, "no replica is both added and removed"),
        ({"removing_replicas": (2,)}, "the target of a reassignment comes first among the replicas"),
        ({"partition_epoch": 8}, "epochs go up by one, the leader epoch never without the partition epoch"),
        ({"partition_epoch": 11}, "epochs go up by one, the leader epoch never without the partition epoch"),
        ({"leader_epoch": 3}, "epochs go up by one, the leader epoch never without the partition epoch"),
        ({"leader_epoch": 5}, "epochs go up by one, the leader epoch never without the partition epoch"),
        (
            {"state": PartitionState.NewPartition, "leader": -1, "leader_epoch": 5, "partition_epoch": 10},
            "a partition does not go from OnlinePartition to NewPartition",
        ),
        (
            {"replica_states": (ONLINE, ONLINE, ReplicaState.NewReplica)},
            "a replica does not go from OnlineReplica to NewReplica",
        ),
        ({"leader": 2, "partition_epoch": 10}, "another leader has another leader epoch"),
        ({"isr": (1,)}, "another ISR has another partition epoch"),
        ({"high_watermark": 6}, "the high watermark does not go back within a leader epoch"),
        ({"log_end_offsets": (7, 7)}, "entries about replicas are one for each replica"),
        ({"offset_epochs": (4,)}, "entries about replicas are one for each replica"),
        ({"lags": (ReplicaLag(),)}, "entries about replicas are one for each replica"),
        ({"completed_epochs": (4, 4, 4, 4)}, "entries about replicas are one for each replica"),
        ({"requested_epochs": (4, 4)}, "entries about replicas are one for each replica"),
        ({"received_epochs": (4, 4)}, "entries about replicas are one for each replica"),
    ],
)
def test_each_rule_is_named(fields: dict[str, Any], rule: str) -> None:
    assert broken_rules(GOOD, replace(GOOD, **fields)) == [rule]


def test_no_broker_is_both_assigned_and_removed() -> None:
    entry = RemovedReplica(2, 3, STARTED)
    states = (ONLINE, STARTED, ONLINE)
    before = replace(GOOD, removed=(entry,), replica_states=states)
    assert broken_rules(before, before) == ["no broker is both assigned and removed"]
    assert broken_rules(before, replace(before, removed=(replace(entry, broker=4),))) == []


def test_a_fenced_broker_neither_leads_nor_shares_an_isr() -> None:
    assert broken_rules(GOOD, GOOD, None, {1, 3}) == []
    assert broken_rules(GOOD, GOOD, None, {2, 3}) == ["a leader is not fenced"]
    shrunk = replace(GOOD, isr=(1, 3), partition_epoch=10)
    assert broken_rules(GOOD, shrunk, None, {1, 3}) == []
    assert broken_rules(GOOD, shrunk, None, {1, 2}) == ["a fenced member of another ISR is its only one"]
    assert broken_rules(GOOD, replace(shrunk, isr=(1,)), None, {1, 2}) == []
    alone = replace(
        GOOD, state=PartitionState.OfflinePartition, leader=-1, isr=(2,), leader_epoch=5, partition_epoch=10
    )
    assert broken_rules(GOOD, alone, None, {3}) == []


def test_a_decreasing_watermark_breaks_a_rule() -> None:
    assert broken_watermark(GOOD, replace(GOOD, high_watermark=6))
    assert not broken_watermark(GOOD, replace(GOOD, high_watermark=6, high_watermark_epoch=5))


def test_an_isr_is_never_emptied() -> None:
    after = replace(GOOD, state=PartitionState.OfflinePartition, leader=-1, isr=(), leader_epoch=5, partition_epoch=10)
    assert broken_rules(GOOD, after) == ["once a leader was elected, the ISR or what is known outside it is not empty"]


def test_the_first_isr_is_not_empty() -> None:
    new = replace(GOOD, state=PartitionState.NewPartition, leader=-1, isr=(), leader_epoch=-1, partition_epoch=-1)
    assert broken_rules(new, new) == []
    after = replace(new, leader_epoch=0, partition_epoch=0)
    assert broken_rules(new, after) == ["once a leader was elected, the ISR or what is known outside it is not empty"]


def test_a_deletion_forgets_the_replicas_that_a_reassignment_had_removed_and_no_others() -> None:
    deleted, ineligible = ReplicaState.ReplicaDeletionSuccessful, ReplicaState.ReplicaDeletionIneligible
    before = replace(
        GOOD,
        state=PartitionState.OfflinePartition,
        leader=-1,
        replica_states=(deleted,) * 3,
        removed=(RemovedReplica(4, 3, ineligible), RemovedReplica(5, 3, STARTED)),
    )
    states = (ReplicaState.NonExistentReplica,) * 3
    gone = replace(before, state=PartitionState.NonExistentPartition, replica_states=states, removed=())
    assert broken_rules(before, gone) == []
    held = replace(before, replica_states=(deleted, deleted, ineligible))
    refused = ["a replica does not go from ReplicaDeletionIneligible to NonExistentReplica"]
    assert broken_rules(held, gone) == refused
    # Before the partition is gone, they are waited for.
    assert broken_rules(before, replace(before, removed=())) == refused


def test_a_removed_replica_that_is_assigned_again_starts_over() -> None:
    before = replace(GOOD, removed=(RemovedReplica(4, 3, STARTED),))
    states = (*GOOD.replica_states, ReplicaState.NewReplica)
    again = replace(before, replicas=(1, 2, 3, 4), replica_states=states, removed=(), partition_epoch=10)
    assert broken_rules(before, again) == []
    started = replace(before, replica_states=(ONLINE, ONLINE, STARTED))
    online = replace(started, replica_states=(ONLINE,) * 3, removed=())
    assert broken_rules(started, online) == ["a replica does not go from ReplicaDeletionStarted to OnlineReplica"]


def test_before_the_first_leader_any_replica_may_be_forgotten() -> None:
    new = ReplicaState.NewReplica
    before = replace(
        GOOD,
        state=PartitionState.NewPartition,
        replica_states=(new,) * 3,
        isr=(),
        leader=-1,
        leader_epoch=-1,
        partition_epoch=-1,
    )
    assert broken_rules(before, replace(before, replicas=(1, 2), replica_states=(new,) * 2)) == []


def test_only_a_replica_of_an_unregistered_broker_is_forgotten() -> None:
    after = replace(GOOD, replicas=(1, 2), replica_states=GOOD.replica_states[:2], leader_epoch=5, partition_epoch=10)
    withheld = ["a replica does not go from OnlineReplica to NonExistentReplica"]
    assert broken_rules(GOOD, after, {1, 2}) == []
    assert broken_rules(GOOD, after, {1, 2, 3}) == withheld
    assert broken_rules(GOOD, after) == withheld
    new = replace(after, replica_states=(ONLINE, ReplicaState.NewReplica))
    assert broken_rules(GOOD, new, {1}) == ["a replica does not go from OnlineReplica to NewReplica"]
