"""Runs: decisions that are encoded together get the bytes and numbers of decisions that are encoded one by one."""

import copy
import random
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pytest
from msgspec.structs import replace

from sinks.outcome_rows import outcomes_of, rows_of
from state import runs
from state.alike import AlikeDecision, Pattern, Said, TopicWatermarks, decision_of, decisions_of, pattern_of
from state.canonical import number, part_of, parts_clash
from state.decisions import KIND_RANK, HighWatermark, LeaderAndIsr, Rejected, StopReplica
from state.reason import Reason
from state.runs import parts_of
from state.shard_outcome import ShardOutcome

TOPICS = ("plain", "100%d", 'quo"te', "näme", "two\nlines")


@lru_cache
def led(seq: int) -> Pattern:
    common: dict[str, Any] = {"seq": seq, "controller_epoch": 1, "time_ms": 5, "reason": Reason.LEADER_FENCED}
    lists = {"isr": (2,), "replicas": (1, 2), "adding_replicas": (), "removing_replicas": (), "to": (2,)}
    rest = {"leader": 2, "leader_recovery_state": "RECOVERED", "is_new": False, "unclean": False}
    place = {"topic": "", "topic_id": "", "partition": 0, "leader_epoch": 0, "partition_epoch": 0}
    return pattern_of(LeaderAndIsr(**common, **place, **lists, **rest))


@lru_cache
def stopped(seq: int) -> Pattern:
    common: dict[str, Any] = {"seq": seq, "controller_epoch": 1, "time_ms": 5, "reason": Reason.CONTROLLED_SHUTDOWN}
    place = {"topic": "", "topic_id": "", "partition": 0, "leader_epoch": 0}
    return pattern_of(StopReplica(**common, **place, delete=False, to=(1,)))


def row(pattern: Pattern, topic: str, partition: int) -> AlikeDecision:
    return AlikeDecision(pattern, topic, f"id of {topic}", partition, 7, 9)


def watermark(seq: int, topic: str, partition: int) -> HighWatermark:
    where: dict[str, Any] = {"topic": topic, "partition": partition, "leader_epoch": 0, "high_watermark": 1}
    return HighWatermark(seq=seq, controller_epoch=1, time_ms=5, reason=Reason.REPLICATED, **where)


def watermarks(seq: int, topic: str, partitions: list[int]) -> TopicWatermarks:
    common = replace(watermark(seq, "", 0), high_watermark=0)
    return TopicWatermarks(common, topic, partitions, [n % 3 for n in partitions], [10 * n for n in partitions])


def refused(seq: int) -> Rejected:
    why: dict[str, Any] = {"raw": '{"index":0} 100%', "field": "", "message": "%d"}
    return Rejected(seq=seq, controller_epoch=1, time_ms=5, reason=Reason.MALFORMED, **why)


def mixed(copies: Callable[[Pattern], Pattern] = lambda pattern: pattern) -> list[Said]:
    """Return decisions of all forms, in an order that no rule makes. ``copies`` may give each its own pattern."""
    said: list[Said] = []
    for seq in (3, 4):
        both = (led(seq), stopped(seq))
        said += [row(copies(pattern), topic, n) for topic in TOPICS for n in range(5) for pattern in both]
        said += [decision_of(row(led(seq), topic, n)) for topic in TOPICS for n in range(5, 9)]
        said += [watermark(seq, topic, n) for topic in TOPICS[:3] for n in range(3)]
        said += [watermarks(seq, topic, numbers) for topic in TOPICS[2:] for numbers in ([3], [4, 6, 7])]
        said += [watermarks(seq, "marked", [0, 2, 3]), watermarks(seq, "alone", [4])]
        said += [row(led(seq), "alone", 3), refused(seq)]
    random.Random(1).shuffle(said)
    return said


@pytest.mark.parametrize("copies", [lambda pattern: pattern, copy.copy])
@pytest.mark.parametrize("most", [1, 2, 4, runs.RUN_DECISIONS_MAX])
def test_runs_are_numbered_as_their_decisions_are_one_by_one(
    monkeypatch: pytest.MonkeyPatch, most: int, copies: Callable[[Pattern], Pattern]
) -> None:
    monkeypatch.setattr(runs, "RUN_DECISIONS_MAX", most)
    said = mixed(copies)
    parts = parts_of(said)
    alike = [part for part in parts if part.rank < KIND_RANK["high_watermark"] and part.decisions > 1]
    assert any(part.columns for part in alike) == (copies is not copy.copy and most > 1)
    decisions = decisions_of(said)
    assert number(parts) == number(map(part_of, decisions))
    assert not parts_clash(parts)
    assert max(part.decisions for part in parts) == min(most, 9)
    assert sum(part.decisions for part in parts) == len(decisions)


def test_runs_of_several_shards_are_merged_on_their_way_through_rows() -> None:
    said = mixed()
    shards = [[one for one in said if getattr(one, "topic", "") in topics] for topics in (TOPICS[:2], TOPICS[2:])]
    rows = [packed for nth, some in enumerate(shards) for packed in rows_of(ShardOutcome(nth, 4, parts_of(some), []))]
    parts = [part for outcome in outcomes_of(reversed(rows)) for part in outcome.parts]
    assert number(parts) == number(map(part_of, decisions_of(shards[0] + shards[1])))


@pytest.mark.parametrize("great", [2**31, 2**63, 2**64])
def test_numbers_that_fit_into_no_column_are_written_all_the_same(great: int) -> None:
    said: list[Said] = [replace(row(led(3), "t", n), leader_epoch=great) for n in range(4)]
    said += [replace(watermark(3, "t", n), high_watermark=great) for n in range(4)]
    said += [replace(watermarks(3, "u", [0, 1]), high_watermarks=[great, 1])]
    parts = parts_of(said)
    assert number(parts) == number(map(part_of, decisions_of(said)))
    assert sum(str(great).encode() in body for _, _, body in number(parts)) == 9


def test_two_decisions_in_one_place_still_clash() -> None:
    twice: list[Said] = [row(led(3), "t", 1), row(led(3), "t", 2), row(led(3), "t", 1)]
    assert parts_clash(parts_of(twice))
    assert not parts_clash(parts_of(twice[:2]))
