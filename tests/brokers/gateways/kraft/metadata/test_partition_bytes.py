"""The records of partitions are written without their layouts, and the layouts give the same bytes."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from brokers.gateways.kraft.metadata.draft import partition_after, partition_of
from brokers.gateways.kraft.metadata.partition_bytes import change_record, id_bytes, partition_record
from brokers.gateways.kraft.metadata.partition_table import PartitionState
from brokers.wire.metadata.record_frame import decode_record, encode_record
from brokers.wire.schema import MessageError

ID = "aaaaaaaaaaaaaaaaaaaaaQ"
DIRECTORIES = [f"{letter}dddddddddddddddddddQ"[:21] + "Q" for letter in "bcdefgh"]
INT_MAX = 2**31 - 1

brokers = st.integers(0, INT_MAX) | st.integers(0, 9)
ids = st.lists(brokers, max_size=40).map(tuple)
epochs = st.integers(0, INT_MAX - 1)
states = st.builds(
    PartitionState,
    ids,
    st.lists(st.sampled_from(DIRECTORIES), max_size=9).map(tuple),
    ids,
    ids,
    ids,
    st.integers(-1, INT_MAX),
    st.integers(0, 1),
    epochs,
    epochs,
    st.just(()) | ids,
    st.just(()) | ids,
)
numbers = st.integers(0, INT_MAX)
# Fields that a change may leave as they are.
KEPT = (
    "replicas",
    "directories",
    "isr",
    "removing_replicas",
    "adding_replicas",
    "leader_recovery_state",
    "elr",
    "last_known_elr",
)
# Kafka writes these only in version 2.
ELIGIBLE = {"EligibleLeaderReplicas", "LastKnownElr"}


def listed(state: PartitionState) -> dict[str, Any]:
    return {
        "Replicas": state.replicas,
        "Directories": state.directories,
        "Isr": state.isr,
        "RemovingReplicas": state.removing_replicas,
        "AddingReplicas": state.adding_replicas,
        "EligibleLeaderReplicas": state.elr or None,
        "LastKnownElr": state.last_known_elr or None,
    }


def version_of(values: dict[str, Any]) -> int:
    return 2 if ELIGIBLE & {name for name, value in values.items() if value is not None} else 1


@given(numbers, states)
def test_a_whole_partition_has_the_bytes_of_its_layout(number: int, state: PartitionState) -> None:
    values = listed(state) | {
        "PartitionId": number,
        "TopicId": ID,
        "Leader": state.leader,
        "LeaderRecoveryState": state.leader_recovery_state,
        "LeaderEpoch": state.leader_epoch,
        "PartitionEpoch": state.partition_epoch,
    }
    written = partition_record(id_bytes(ID), number, state)
    assert written == encode_record("PartitionRecord", version_of(values), values)
    assert partition_of(decode_record(written).values) == state


@given(numbers, states, states, st.sets(st.sampled_from(KEPT)))
def test_a_change_has_the_bytes_of_its_layout(
    number: int, held: PartitionState, other: PartitionState, same: set[str]
) -> None:
    kept = {name: getattr(held, name) for name in same}
    elected = {"leader": other.leader, "leader_epoch": held.leader_epoch + 1}
    for leader in (elected, {"leader": held.leader, "leader_epoch": held.leader_epoch}):
        wanted = replace(other, **kept, **leader, partition_epoch=held.partition_epoch + 1)
        before, after = listed(held), listed(wanted)
        # An empty list says that nobody is eligible any more.
        values: dict[str, Any] = {name: after[name] or () for name in after if after[name] != before[name]}
        if leader is elected:
            values["Leader"] = wanted.leader
        if wanted.leader_recovery_state != held.leader_recovery_state:
            values["LeaderRecoveryState"] = wanted.leader_recovery_state
        written = change_record(id_bytes(ID), number, held, wanted)
        version = version_of(values)
        assert written == encode_record(
            "PartitionChangeRecord", version, {"PartitionId": number, "TopicId": ID} | values
        )
        assert partition_after(held, decode_record(written).values) == wanted


def test_values_that_do_not_fit_are_refused() -> None:
    state = PartitionState((1,), (DIRECTORIES[0],), (1,), (), (), 1, 0, 0, 0)
    with pytest.raises(MessageError, match="PartitionRecord of partition 5"):
        partition_record(id_bytes(ID), 5, replace(state, leader_epoch=INT_MAX + 1))
    with pytest.raises(MessageError, match="PartitionRecord of partition 5: 'no uuid' is not a uuid"):
        partition_record(id_bytes(ID), 5, replace(state, directories=("no uuid",)))
    with pytest.raises(MessageError, match="PartitionChangeRecord of partition 5"):
        change_record(id_bytes(ID), 5, state, replace(state, isr=(INT_MAX + 1,)))
    with pytest.raises(MessageError, match="a topic's id: 'no uuid' is not a uuid"):
        id_bytes("no uuid")
