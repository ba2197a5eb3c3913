"""A report of many log ends leads to what its rows would lead to one by one."""

from collections.abc import Iterator
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from controller_logic.replay import decide
from state.cluster import State
from state.decisions import Answer, AnyDecision, HighWatermark
from state.events import LogEndOffsets
from state.topic_events import LogEndRow, TopicLogEnds
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
