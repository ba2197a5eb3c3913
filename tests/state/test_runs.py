"""Runs: decisions that are encoded together get the bytes and numbers of decisions that are encoded one by one."""

import random
from functools import lru_cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from sinks.metric_snapshot import count_decisions
from sinks.outcome_rows import outcomes_of, rows_of
from state import columns_in_order, runs
from state.alike import WATERMARK, AlikeDecisions, Form, Said, Saying, decisions_of, form_of, named, named_in_text
from state.canonical import number, numbered_runs, parts_clash
from state.counted import CountedBy, reasons_in
from state.decisions import KIND_RANK, AnyDecision, LeaderAndIsr, Rejected, StopReplica
from state.level import FIRST_LEVEL, NEWEST_LEVEL
from state.numbered_run import flat
from state.part import Part, part_of
from state.reason import Reason
from state.runs import parts_of
from state.shard_outcome import ShardOutcome

TOPICS = ("plain", "100%d", 'quo"te', "näme", "two\nlines")


def form(decision: LeaderAndIsr | StopReplica) -> Form:
    made = form_of(decision, (1, 2))
    assert made is not None
    return made


COMMON: dict[str, Any] = {"seq": 0, "controller_epoch": 0, "time_ms": 0}


@lru_cache
def led(reason: Reason = Reason.LEADER_FENCED) -> Form:
    lists = {"isr": (2,), "replicas": (1, 2), "adding_replicas": (), "removing_replicas": (), "to": (2,)}
    rest = {"leader": 2, "leader_recovery_state": "RECOVERED", "is_new": False, "unclean": False}
    place = {"topic": "", "topic_id": "", "partition": 0, "leader_epoch": 0, "partition_epoch": 0}
    return form(LeaderAndIsr(**COMMON, reason=reason, **place, **lists, **rest))


@lru_cache
def stopped() -> Form:
    place = {"topic": "", "topic_id": "", "partition": 0, "leader_epoch": 0}
    return form(StopReplica(**COMMON, reason=Reason.CONTROLLED_SHUTDOWN, **place, delete=False, to=(1,)))


def row(alike: Form, topic: str, partition: int, seq: int = 3, leader_epoch: int = 7) -> AlikeDecisions:
    # Some have more replicas than columns have room for.
    replicas = (1 + partition % 3, 5, *range(10, 10 + (0, 3, runs.REPLICAS_MAX)[partition % 3]))
    rows = [(named_in_text(topic, f"id of {topic}"), partition, alike, replicas, leader_epoch, 9)]
    return AlikeDecisions(Saying(seq, 1, 5), alike.rank, rows)


def one_of(alike: AlikeDecisions) -> AnyDecision:
    """Write the only decision out."""
    [decision] = decisions_of([alike])
    return decision


def topic_of(one: Said) -> str:
    return one.rows[0][0][0] if isinstance(one, AlikeDecisions) else getattr(one, "topic", "")


def watermarks(seq: int, topic: str, partitions: list[int], more: int = 0) -> AlikeDecisions:
    rows = [(named_in_text(topic, ""), n, WATERMARK, (), n % 3, 10 * n + more) for n in partitions]
    return AlikeDecisions(Saying(seq, 1, 5), WATERMARK.rank, rows)


MARKS = watermarks(3, "b%", [1, 2])


def refused(seq: int) -> Rejected:
    why: dict[str, Any] = {"raw": '{"index":0} 100%', "field": "", "message": "%d"}
    return Rejected(seq=seq, controller_epoch=1, time_ms=5, reason=Reason.MALFORMED, **why)


def mixed() -> list[Said]:
    """Return decisions of all kinds and forms, in an order that no rule makes."""
    said: list[Said] = []
    for seq in (3, 4):
        both = (led(), stopped())
        said += [row(one, topic, n, seq) for topic in TOPICS for n in range(5) for one in both]
        said += [one_of(row(led(), topic, n, seq)) for topic in TOPICS for n in range(5, 9)]
        said += [watermarks(seq, topic, [n]) for topic in TOPICS[:3] for n in range(3)]
        said += [watermarks(seq, topic, numbers) for topic in TOPICS[2:] for numbers in ([3], [4, 6, 7])]
        said += [watermarks(seq, "marked", [0, 2, 3]), watermarks(seq, "alone", [4])]
        said += [row(led(), "alone", 3, seq), refused(seq)]
    random.Random(1).shuffle(said)
    return said


def decisions_in(part: Part) -> int:
    return part.columns.decision_count if part.columns else 1


at_each_level = pytest.mark.parametrize("level", range(FIRST_LEVEL, NEWEST_LEVEL + 1))


@at_each_level
@pytest.mark.parametrize("most", [1, 2, 4, runs.RUN_DECISIONS_MAX])
def test_runs_are_numbered_as_their_decisions_are_one_by_one(
    monkeypatch: pytest.MonkeyPatch, most: int, level: int
) -> None:
    for module, name in ((runs, "RUN_DECISIONS_MAX"), (runs, "ROWS_MAX"), (columns_in_order, "ROWS_MAX")):
        monkeypatch.setattr(module, name, most)
    said = mixed()
    parts = parts_of(said, level)
    alike = [part for part in parts if part.rank < KIND_RANK["high_watermark"]]
    assert any(part.columns for part in alike) == (most > 1)
    decisions = decisions_of(said)
    assert number(parts) == number(map(part_of, decisions))
    assert not parts_clash(parts)
    assert max(map(decisions_in, parts)) == most or most == runs.RUN_DECISIONS_MAX
    assert sum(map(decisions_in, parts)) == len(decisions)
    assert max(run.decisions for run in numbered_runs(parts)) <= most


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 5), st.integers(1, 40), st.randoms(use_true_random=False))
def test_the_runs_of_any_number_of_shards_are_numbered_as_those_of_one(shards: int, most: int, draw: Any) -> None:
    said = mixed()
    level = draw.choice((FIRST_LEVEL, NEWEST_LEVEL))
    shard_of = {topic: draw.randrange(shards) for topic in (*TOPICS, "marked", "alone")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "RUN_DECISIONS_MAX", draw.randint(1, 4))
        patch.setattr(runs, "ROWS_MAX", draw.randint(1, most))
        patch.setattr(columns_in_order, "ROWS_MAX", most)
        parts = [
            part
            for shard in range(shards)
            for part in parts_of([one for one in said if shard_of.get(topic_of(one), 0) == shard], level)
        ]
        draw.shuffle(parts)
        numbered = numbered_runs(parts)
    one_by_one = numbered_runs(map(part_of, decisions_of(said)))
    assert flat(numbered) == flat(one_by_one)
    assert count_decisions(numbered) == count_decisions(one_by_one)
    assert all(run.columns is None or 1 < run.decisions <= max(most, 4) for run in numbered)


@at_each_level
def test_brokers_outside_smaller_isrs_are_counted_in_columns_as_one_by_one(level: int) -> None:
    shrunk: list[Said] = [row(led(Reason.ISR_SHRUNK), topic, n) for topic in ("a", "b%") for n in range(6)]
    said = [row(led(), "a", 7), *shrunk]
    numbered = numbered_runs(parts_of(said, level))
    assert any(run.columns for run in numbered)
    counts = count_decisions(numbered)
    assert counts == count_decisions(numbered_runs(map(part_of, decisions_of(said))))
    # The form is of brokers 1 and 2, of whom a row names others in their places.
    assert counts.isr_shrinks == {1 + n % 3: 4 for n in range(3)}


def test_a_decision_without_a_form_stands_in_columns_among_those_that_have_one() -> None:
    said: list[Said] = [row(led(), topic, n) for topic in ("a", "b%") for n in range(8)]
    said += [one_of(row(led(), "b%", 11)), one_of(row(led(), "c", 1)), MARKS]
    parts = parts_of(said)
    assert sorted((part.topic, decisions_in(part), bool(part.columns)) for part in parts) == [
        ("a", 18, True),
        ("b%", 2, True),
    ]
    assert number(parts) == number(map(part_of, decisions_of(said)))


def test_runs_of_several_shards_are_merged_on_their_way_through_rows() -> None:
    said = mixed()
    shards = [[one for one in said if topic_of(one) in topics] for topics in (TOPICS[:2], TOPICS[2:])]
    rows = [
        packed
        for nth, some in enumerate(shards)
        for packed in rows_of(ShardOutcome(nth, 4, parts_of(some, NEWEST_LEVEL), []))
    ]
    parts = [part for outcome in outcomes_of(reversed(rows)) for part in outcome.parts]
    assert number(parts) == number(map(part_of, decisions_of(shards[0] + shards[1])))


@pytest.mark.parametrize("great", [2**31, 2**63, 2**64])
def test_numbers_that_fit_into_no_column_are_written_all_the_same(great: int) -> None:
    said: list[Said] = [row(led(), "t", n, leader_epoch=great) for n in range(4)]
    said += [watermarks(3, topic, [*range(4)], great - 30) for topic in "tu"]
    parts = parts_of(said, NEWEST_LEVEL)
    assert number(parts) == number(map(part_of, decisions_of(said)))
    assert sum(str(great).encode() in body for _, _, body in number(parts)) == 6


def test_two_decisions_in_one_place_still_clash() -> None:
    twice: list[Said] = [row(led(), "t", 1), row(led(), "t", 2), row(led(), "t", 1)]
    assert parts_clash(parts_of(twice))
    assert not parts_clash(parts_of(twice[:2]))
    assert len(parts_of(twice)) == 3
    marks: list[Said] = [watermarks(3, *some) for some in (("t", [1]), ("t", [2]), ("t", [1, 4]), ("u", [1]))]
    assert parts_clash(parts_of(marks))
    assert sorted(part.partition for part in parts_of(marks)) == [1, 1, 1, 2, 4]


LED = one_of(AlikeDecisions(Saying(3, 1, 5), led().rank, [(named_in_text("t", "id of t"), 0, led(), (1, 2), 7, 9)]))
ELECTIONS = [
    replace(LED, unclean=unclean, passed_over=passed_over)
    for unclean in (False, True)
    for passed_over in (UNSET, {1: "fenced"})
]


@pytest.mark.parametrize("are_alike", [True, False])
def test_a_run_counts_its_elections_by_what_they_say(are_alike: bool) -> None:
    numbers = iter(range(100))
    said: list[Said] = [
        row(alike, "t", next(numbers)) for nth, alike in enumerate(map(form, ELECTIONS)) for _ in range(2 + nth)
    ]
    [run] = numbered_runs(parts_of(said if are_alike else decisions_of(said)))
    assert run.columns is not None
    assert reasons_in(run.columns) == {
        CountedBy("LEADER_FENCED"): 2,
        CountedBy("LEADER_FENCED", passes_over=True): 3,
        CountedBy("LEADER_FENCED", unclean=True): 4,
        CountedBy("LEADER_FENCED", unclean=True, passes_over=True): 5,
    }


def test_stops_and_high_watermarks_count_as_no_elections() -> None:
    stops: list[Said] = [row(stopped(), "t", n) for n in range(4)]
    # One without a pattern stands in columns among the others.
    stops.append(one_of(row(stopped(), "t", 4)))
    runs_of_all = numbered_runs([*parts_of(stops), *parts_of([MARKS])])
    assert [run.columns and reasons_in(run.columns) for run in runs_of_all] == [
        {CountedBy("CONTROLLED_SHUTDOWN"): 5},
        {CountedBy("REPLICATED"): 2},
    ]
    assert flat(runs_of_all[:1]) == number(map(part_of, decisions_of(stops)))


def test_an_admin_is_named_in_decisions_of_every_form() -> None:
    said = [*mixed(), MARKS]
    by_admin = named(said, "User:alice")
    assert decisions_of(by_admin) == [replace(one, principal="User:alice") for one in decisions_of(said)]
