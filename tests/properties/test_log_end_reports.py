"""A report of many log ends leads to what its rows would lead to one by one."""

from collections.abc import Iterator
from itertools import permutations, product
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from controller_logic.replay import decide
from controller_logic.watermark import Derived, derive_high_watermark, unheld_end
from state.cluster import State
from state.decisions import Answer, AnyDecision, HighWatermark
from state.events import LogEndOffsets
from state.log_end_events import LogEndRow, TopicLogEnds
from state.partition import Partition, PartitionState, ReplicaState
from tests.properties.rows import POLICY, as_events, decided_alike_in_any_shards_and_batches, played, refused, stored
from tests.support.by_reference import by_reference
from tests.support.lying_clocks import entries
from tests.support.random_logs import draws, walk
from tests.support.scenes import Draw


def _tick(state: State) -> bytes:
    cluster = state.cluster
    told: dict[str, Any] = {
        "kind": "tick",
        "time_ms": cluster.clock_ms + 1,
        "controller_epoch": cluster.controller_epoch,
    }
    return msgspec.json.encode(told)


def _reports(state: State, choices: list[int]) -> Iterator[LogEndOffsets]:
    """Report, for each broker, log ends of all that it holds, and make mistakes now and then."""
    topics = [topic for name in state.topics.names() if (topic := state.topics.get(name)) is not None]
    for broker in (*range(4), 9):
        told: list[TopicLogEnds] = []
        for nth, topic in enumerate(topics):
            rows: list[LogEndRow] = []
            for held in topic.partitions:
                choice = choices[(nth + held.partition + broker) % len(choices)]
                removed = {entry.broker for entry in held.removed}
                if broker in held.replicas or broker in removed or choice in (6, 7):
                    epoch = max(0, held.leader_epoch + (choice == 8) - (choice == 9))
                    rows += [LogEndRow(held.partition, epoch, choice), LogEndRow(held.partition, epoch, 3)][
                        : 1 + choice % 2
                    ]
            if choices[0] == 5:
                rows.append(LogEndRow(99, 0, 0))
            if rows:
                told.append(TopicLogEnds(topic.topic, tuple(rows), (None, topic.topic_id, "another")[choices[-1] % 3]))
        told.append(TopicLogEnds("nowhere", (LogEndRow(0, 0, 0),)))
        registered = state.cluster.brokers.get(broker)
        epoch = 0 if registered is None else registered.broker_epoch - (choices[0] == 4)
        yield LogEndOffsets(
            time_ms=state.cluster.clock_ms, broker=broker, broker_epoch=epoch, topics=tuple(told), request_id="q"
        )


@settings(max_examples=60, deadline=None)
@given(draws(max_size=60), st.lists(st.integers(0, 11), min_size=1, max_size=6))
def test_each_row_counts_as_it_would_as_an_event_of_its_own(drawn: list[Draw], choices: list[int]) -> None:
    [state] = decide(list(entries(raw for _, raw, _ in walk(drawn, POLICY))), POLICY).states
    state = replace(state, cluster=replace(state.cluster))
    for event in _reports(state, choices):
        state = _compared(state, event)


def _compared(state: State, event: LogEndOffsets) -> State:
    """Decide a report as a whole and row by row, and a tick after each; return the state after it."""
    by_rows, decisions = played(state, as_events("log_end_offset", event))
    whole, together = played(state, [msgspec.json.encode(event)])
    assert stored(whole) == stored(by_rows)
    [answer] = [one for one in together if isinstance(one, Answer)]
    if event.broker in state.cluster.brokers:
        assert sorted((one.error, one.message) for one in answer.results or ()) == refused(decisions)
    after, told = played(whole, [_tick(whole)])
    with by_reference():
        expected, told_by_rows = played(by_rows, [_tick(by_rows)])
    assert stored(after) == stored(expected)
    assert _watermarks(told) == _watermarks(told_by_rows)
    return after


def _watermarks(decisions: list[AnyDecision]) -> list[tuple[str, int, int, int]]:
    """List the high watermarks in the order of the decision log. A shard may decide those of one event in any order."""
    found = [one for one in decisions if isinstance(one, HighWatermark)]
    return sorted((one.topic, one.partition, one.leader_epoch, one.high_watermark) for one in found)


@settings(max_examples=30, deadline=None)
@given(draws(max_size=80))
def test_reports_are_decided_alike_in_any_shards_and_batches(drawn: list[Draw]) -> None:
    decided_alike_in_any_shards_and_batches(drawn)


ISRS = [isr for size in (1, 2, 3) for isr in permutations((1, 2, 3), size)]


def small_partitions() -> Iterator[Partition]:
    """Return every partition of three replicas with log ends up to 2, some of which were reported in an older epoch."""
    for isr, leader, ends, epochs, high_watermark in product(
        ISRS, (-1, 1, 2), product(range(3), repeat=3), product((4, 5), repeat=3), range(3)
    ):
        yield Partition(
            partition=0,
            state=PartitionState.OnlinePartition,
            replicas=(1, 2, 3),
            replica_states=(ReplicaState.OnlineReplica,) * 3,
            isr=isr,
            leader=leader,
            leader_epoch=5,
            high_watermark=high_watermark,
            log_end_offsets=ends,
            offset_epochs=epochs,
        )


@pytest.mark.parametrize("min_isr", [1, 2, 3, 4])
def test_an_end_that_no_joiner_holds_is_the_derived_high_watermark(min_isr: int) -> None:
    # Hypothesis hardly ever draws a partition that has such an end.
    found = 0
    for partition in small_partitions():
        isr, ends, epochs = partition.isr, partition.log_end_offsets, partition.offset_epochs
        end = unheld_end(partition, min_isr)
        # Only a replica that has reported in this leader epoch can have caught up.
        joiners = [n for n in (1, 2, 3) if n not in isr and epochs[n - 1] == 5]
        if end is not None:
            found += 1
            for count in range(len(joiners) + 1):
                assert derive_high_watermark(partition, min_isr, tuple(joiners[:count])) == Derived(end, is_held=False)
        elif len(isr) == 3 and partition.leader > 0 and set(epochs) == {5}:
            assert min(ends) < partition.high_watermark
    assert found > 100


def test_a_partition_without_reports_has_no_such_end() -> None:
    for partition in small_partitions():
        silent = replace(partition, log_end_offsets=(), offset_epochs=())
        assert unheld_end(silent, 1) is None
