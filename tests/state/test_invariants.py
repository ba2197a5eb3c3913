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

GOOD = Partition(
    0,
    PartitionState.OnlinePartition,
    (1, 2, 3),
    (ReplicaState.OnlineReplica,) * 3,
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
        ({"leader_epoch": 5}, "epochs go up by one, the leader epoch never without the partition epoch"),
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
    entry = RemovedReplica(2, 3, ReplicaState.ReplicaDeletionStarted)
    states = (ReplicaState.OnlineReplica, ReplicaState.ReplicaDeletionStarted, ReplicaState.OnlineReplica)
    before = replace(GOOD, removed=(entry,), replica_states=states)
    assert broken_rules(before, before) == ["no broker is both assigned and removed"]
    assert broken_rules(before, replace(before, removed=(replace(entry, broker=4),))) == []


def test_a_fenced_broker_neither_leads_nor_shares_an_isr() -> None:
    assert broken_rules(GOOD, GOOD, None, {1, 3}) == []
    assert broken_rules(GOOD, GOOD, None, {2, 3}) == ["a leader is not fenced"]
    shrunk = replace(GOOD, isr=(1, 3), partition_epoch=10)
    assert broken_rules(GOOD, shrunk, None, {1, 2}) == ["a fenced member of another ISR is its only one"]
    assert broken_rules(GOOD, replace(shrunk, isr=(1,)), None, {1, 2}) == []


def test_a_decreasing_watermark_breaks_a_rule() -> None:
    assert broken_watermark(GOOD, replace(GOOD, high_watermark=6))
    assert not broken_watermark(GOOD, replace(GOOD, high_watermark=6, high_watermark_epoch=5))


def test_an_isr_is_never_emptied() -> None:
    after = replace(GOOD, state=PartitionState.OfflinePartition, leader=-1, isr=(), leader_epoch=5, partition_epoch=10)
    assert broken_rules(GOOD, after) == ["the ISR is not empty once a leader was elected"]


def test_only_a_replica_of_an_unregistered_broker_is_forgotten() -> None:
    after = replace(GOOD, replicas=(1, 2), replica_states=GOOD.replica_states[:2], leader_epoch=5, partition_epoch=10)
    withheld = ["a replica does not go from OnlineReplica to NonExistentReplica"]
    assert broken_rules(GOOD, after, {1, 2}) == []
    assert broken_rules(GOOD, after, {1, 2, 3}) == withheld
    assert broken_rules(GOOD, after) == withheld
