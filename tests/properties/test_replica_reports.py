"""A report on many replicas leads to what its rows would lead to one by one."""

from collections.abc import Iterator
from typing import Any, get_args

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from controller_logic.replay import decide
from state.cluster import State
from state.decisions import Answer, AnyDecision, LeaderAndIsr, StopReplica, TopicDecision
from state.events import ReplicaReports
from state.topic_events import ReportedOutcome, ReportRow, TopicReports
from tests.properties.rows import POLICY, as_events, decided_alike_in_any_shards_and_batches, played, refused, stored
from tests.support.lying_clocks import entries
from tests.support.random_logs import draws, walk
from tests.support.scenes import Draw

_NUMBERED = {"seq", "index"}
OUTCOMES: tuple[ReportedOutcome, ...] = get_args(ReportedOutcome)


def _said(decisions: list[AnyDecision]) -> list[dict[str, Any]]:
    """Return the orders to brokers and what became of topics, without their place in the log."""
    orders = [one for one in decisions if isinstance(one, LeaderAndIsr | StopReplica | TopicDecision)]
    told = [{n: v for n, v in msgspec.structs.asdict(one).items() if n not in _NUMBERED} for one in orders]
    return sorted(told, key=lambda one: (one["topic"], one.get("partition", -1), "delete" in one))


def _reports(state: State, choices: list[int]) -> Iterator[ReplicaReports]:
    """Report, for each broker, on all replicas that it has, and make mistakes now and then."""
    for broker in (*range(1, 5), 9):
        told: list[TopicReports] = []
        for nth, name in enumerate(state.topics.names()):
            topic = state.topics.get(name)
            assert topic is not None
            rows: list[ReportRow] = []
            for held in topic.partitions:
                choice = choices[(nth + held.partition + broker) % len(choices)]
                if broker in (*held.replicas, *[entry.broker for entry in held.removed]) or choice == 7:
                    epoch = max(-2, held.leader_epoch + (choice == 8) - (choice == 9))
                    error = ("KAFKA_STORAGE_ERROR", "FENCED_LEADER_EPOCH", None)[choice % 3]
                    rows.append(ReportRow(held.partition, epoch, OUTCOMES[(choice + nth) % 6], error))
            # Where the last replica of a deleted topic is reported, the topic is gone before this row.
            rows.append(ReportRow(99, 0, "deleted"))
            told.append(TopicReports(name, tuple(rows), (None, topic.topic_id, "another")[choices[-1] % 3]))
        told.append(TopicReports("nowhere", (ReportRow(0, 0, "leader"),)))
        registered = state.cluster.brokers.get(broker)
        epoch = 0 if registered is None else registered.broker_epoch - (choices[0] == 4)
        yield ReplicaReports(
            time_ms=state.cluster.clock_ms, broker=broker, broker_epoch=epoch, topics=tuple(told), request_id="q"
        )


@settings(max_examples=80, deadline=None)
@given(draws(max_size=60), st.lists(st.integers(0, 11), min_size=1, max_size=6))
def test_each_row_counts_as_it_would_as_an_event_of_its_own(drawn: list[Draw], choices: list[int]) -> None:
    [state] = decide(list(entries(raw for _, raw, _ in walk(drawn, POLICY))), POLICY).states
    state = replace(state, cluster=replace(state.cluster))
    for turn in range(2):
        # The second time some replicas are offline, and some topics are being deleted.
        for event in _reports(state, choices[turn:] or choices):
            state = _compared(state, event)
        state, _ = played(state, [_deletion(name) for name in state.topics.names()[: choices[0]]])


def _deletion(name: str) -> bytes:
    return msgspec.json.encode({"kind": "delete_topic", "time_ms": 0, "topic": name})


def _compared(state: State, event: ReplicaReports) -> State:
    """Decide a report as a whole and row by row; return the state after it."""
    by_rows, decisions = played(state, as_events("replica_report", event))
    whole, together = played(state, [msgspec.json.encode(event)])
    assert stored(whole) == stored(by_rows)
    assert _said(together) == _said(decisions)
    [answer] = [one for one in together if isinstance(one, Answer)]
    registered = state.cluster.brokers.get(event.broker)
    if registered is not None and registered.broker_epoch == event.broker_epoch:
        assert sorted((one.error, one.message) for one in answer.results or ()) == refused(decisions)
    else:
        assert {(answer.error, answer.message)} == set(refused(decisions))
    return whole


@settings(max_examples=30, deadline=None)
@given(draws(max_size=80))
def test_reports_are_decided_alike_in_any_shards_and_batches(drawn: list[Draw]) -> None:
    decided_alike_in_any_shards_and_batches(drawn)
