"""A request for many ISRs leads to the decisions that its rows would lead to one by one."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from controller_logic.replay import decide
from state.cluster import MappedTopics, State
from state.decisions import Answer, AnyDecision, LeaderAndIsr, StopReplica
from state.events import AlterIsrs
from state.partition import Partition, Topic, TopicState
from state.topic_events import IsrRow, TopicIsrs
from tests.properties.rows import POLICY, decided_alike_in_any_shards_and_batches, played, stored
from tests.properties.test_alike import BASES, TIMES, VALUES, broadened, cluster_about
from tests.support.lying_clocks import entries
from tests.support.random_logs import draws, walk
from tests.support.scenes import Draw

_NUMBERED = {"seq", "index"}


def one_by_one(event: AlterIsrs) -> list[bytes]:
    """Write each row of a request as an event of its own."""
    return [
        msgspec.json.encode(
            {
                "kind": "alter_isr",
                "time_ms": event.time_ms,
                "topic": named.topic,
                "topic_id": named.topic_id,
                "partition": row.partition,
                "broker": event.broker,
                "broker_epoch": event.broker_epoch,
                "leader_epoch": row.leader_epoch,
                "partition_epoch": row.partition_epoch,
                "isr": row.isr,
                "isr_epochs": row.isr_epochs,
                "leader_recovery_state": row.leader_recovery_state,
            }
        )
        for named in event.topics
        for row in named.partitions
    ]


def _said(decisions: list[AnyDecision]) -> list[dict[str, Any]]:
    """Return the orders to brokers, without their place in the log."""
    orders = [one for one in decisions if isinstance(one, LeaderAndIsr | StopReplica)]
    told = [{n: v for n, v in msgspec.structs.asdict(one).items() if n not in _NUMBERED} for one in orders]
    return sorted(told, key=lambda one: (one["topic"], one["partition"], "delete" in one))


def _refusals(decisions: list[AnyDecision]) -> list[tuple[object, ...]]:
    answers = [one for one in decisions if isinstance(one, Answer) and one.error != "NONE"]
    return sorted((one.topic, one.partition, one.error, one.message) for one in answers)


def _requests(state: State, choices: list[int]) -> Iterator[AlterIsrs]:
    """Ask, for each broker, for ISRs of all that it leads, and make mistakes now and then."""
    topics = [topic for name in state.topics.names() if (topic := state.topics.get(name)) is not None]
    led: dict[int, dict[str, list[IsrRow]]] = {}
    for place, (name, held) in enumerate((topic.topic, one) for topic in topics for one in topic.partitions):
        choice = choices[(place % TIMES) % len(choices)]
        others = [replica for replica in held.replicas if replica != held.leader]
        isr = (held.leader, *others[: choice % 3]) if held.leader >= 0 else held.replicas
        epochs = (max(0, held.leader_epoch - (choice == 7)), max(0, held.partition_epoch + (choice == 8)))
        known = tuple(state.cluster.brokers[n].broker_epoch if n in state.cluster.brokers else 0 for n in isr)
        if choice == 5:
            known = (*known[:-1], known[-1] + 1)
        row = IsrRow(held.partition, *epochs, isr, known if choice % 2 else None, 1 if choice == 9 else None)
        led.setdefault(max(0, held.leader), {}).setdefault(name, []).append(row)
    for leader, rows in led.items():
        held_broker = state.cluster.brokers.get(leader)
        epoch = 0 if held_broker is None else held_broker.broker_epoch
        named = tuple(TopicIsrs(name, tuple(some)) for name, some in rows.items())
        yield AlterIsrs(time_ms=state.cluster.clock_ms, broker=leader, broker_epoch=epoch, topics=named)


@settings(max_examples=60, deadline=None)
@given(draws(max_size=60), st.lists(st.integers(0, 11), min_size=1, max_size=6))
def test_each_row_gets_what_it_would_get_as_an_event_of_its_own(drawn: list[Draw], choices: list[int]) -> None:
    log = list(entries(broadened(raw for _, raw, _ in walk(drawn, POLICY))))
    [state] = decide(log, POLICY).states
    state = replace(state, cluster=replace(state.cluster))
    for event in _requests(state, choices):
        state = _compared(state, event)


def _compared(state: State, event: AlterIsrs) -> State:
    """Decide a request as a whole and row by row; return the state after it."""
    by_rows, decisions = played(state, one_by_one(event))
    whole, together = played(state, [msgspec.json.encode(event)])
    assert _said(together) == _said(decisions)
    assert stored(whole) == stored(by_rows)
    if event.broker in state.cluster.brokers:
        [answer] = [one for one in together if isinstance(one, Answer)]
        results = [(one.topic, one.partition, one.error, one.message) for one in answer.results or ()]
        assert results == _refusals(decisions)
    return whole


@pytest.mark.parametrize("isr", [(1,), (1, 2), (2,), (1, 3), ()])
@pytest.mark.parametrize("field", VALUES)
def test_partitions_that_differ_in_one_field_each_get_what_the_rule_decides(field: str, isr: tuple[int, ...]) -> None:
    for base in BASES:
        for value in VALUES[field]:
            # Who has reported has a log end, here one below the high watermark.
            reported = {"log_end_offsets": (9, 4), "high_watermark": 5} if field == "offset_epochs" else {}
            other = replace(base, **{field: value}, **reported)
            for both in ([base, other], [other, base]):
                rows = [IsrRow(0, max(0, one.leader_epoch), max(0, one.partition_epoch), isr) for one in both]
                _compared_about(both, rows)


ROWS = [
    IsrRow(0, epoch, version, isr, isr_epochs, recovery)
    for epoch, version, isr, isr_epochs, recovery in (
        *[(1, 3, isr, None, None) for isr in ((1,), (1, 2), (2, 1), (2,), (1, 3), (1, 1), ())],
        *[(1, 3, (1,), epochs, None) for epochs in ((1,), (9,), (-1,), (1, 2), ())],
        *[(1, 3, (1,), None, recovery) for recovery in (0, 1, "RECOVERED", "RECOVERING")],
        *[(epoch, version, (1,), None, None) for epoch, version in ((0, 3), (2, 3), (1, 2), (1, 4))],
    )
]


@pytest.mark.parametrize("one", ROWS)
def test_rows_that_differ_in_one_value_each_get_what_the_rule_decides(one: IsrRow) -> None:
    for other in ROWS:
        _compared_about([BASES[0]] * 3, [one, other, one])


def _compared_about(partitions: list[Partition], rows: list[IsrRow]) -> None:
    """Compare what rows lead to, each about a topic of one partition."""
    topics = [Topic(f"t{n}", f"id{n}", TopicState.created, {}, (one,)) for n, one in enumerate(partitions)]
    state = State(cluster_about(), MappedTopics({topic.topic: topic for topic in topics}))
    named = tuple(TopicIsrs(topic.topic, (row,)) for topic, row in zip(topics, rows, strict=True))
    _compared(state, AlterIsrs(time_ms=0, broker=1, broker_epoch=1, topics=named))


@settings(max_examples=30, deadline=None)
@given(draws(max_size=80))
@example([*[("register", 0, 0, 0)] * 39, ("offsets", 0, 9, 0), ("create", 0, 0, 0), ("offsets", 0, 0, 4)])
@example([*[("register", 0, 0, 0)] * 42, ("create", 0, 0, 0), ("offsets", 0, 0, 1), ("offsets", 0, 0, 4)])
def test_requests_are_decided_alike_in_any_shards_and_batches(drawn: list[Draw]) -> None:
    decided_alike_in_any_shards_and_batches(drawn)
