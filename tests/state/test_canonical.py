"""The canonical order, and the merging of several shards' decisions."""

import itertools
import json
from typing import Any

import pytest
from msgspec import UNSET

from state import canonical
from state.canonical import bounded, number, parts_clash
from state.decisions import (
    KIND_RANK,
    Answer,
    AnyDecision,
    BrokerDecision,
    HighWatermark,
    Imbalance,
    PartitionResult,
    Rejected,
    StopReplica,
)
from state.part import part_of
from state.reason import Reason

COMMON: dict[str, Any] = {"controller_epoch": 1, "time_ms": 5, "reason": Reason.REQUEST_DONE}


def broker(broker: int, seq: int = 1, **fields: Any) -> BrokerDecision:
    registered = {"broker_epoch": 1, "incarnation": "i", "state": "fenced", "rack": None, "listeners": ()}
    return BrokerDecision(**(COMMON | registered | {"seq": seq, "broker": broker} | fields))


def answer(seq: int = 1, **fields: Any) -> Answer:
    said = {"request_id": None, "request": "elect_leaders", "error": "NONE", "message": ""}
    return Answer(**(COMMON | said | {"seq": seq} | fields))


def watermark(topic: str, partition: int, seq: int = 1) -> HighWatermark:
    where = {"topic": topic, "partition": partition, "leader_epoch": 0, "high_watermark": 1}
    return HighWatermark(**(COMMON | where | {"seq": seq}))


def result(partition: int, error: str) -> PartitionResult:
    return PartitionResult(topic="t", partition=partition, error=error, message=f"{error} of {partition}")


def test_kinds_are_ordered_as_in_the_contract() -> None:
    assert sorted(KIND_RANK, key=KIND_RANK.__getitem__) == [
        "leader_and_isr",
        "stop_replica",
        "topic",
        "broker",
        "high_watermark",
        "answer",
        "config",
        "rejected",
        "imbalance",
        "quorum",
        "producer_ids",
        "no_op",
        "acls",
        "entity",
        "level",
        "divergence",
        "violation",
    ]


def test_the_order_of_parts_does_not_change_the_numbers() -> None:
    stop = StopReplica(**COMMON, seq=1, topic="z", topic_id="i", partition=0, leader_epoch=0, delete=False, to=(1,))
    decisions: list[AnyDecision] = [
        watermark("b", 0),
        watermark("a", 10),
        watermark("a", 9),
        broker(3),
        broker(1, seq=2),
        stop,
    ]
    parts = [part_of(decision) for decision in decisions]
    numbered = number(parts)
    assert [(seq, index) for seq, index, _ in numbered] == [(1, 0), (1, 1), (1, 2), (1, 3), (1, 4), (2, 0)]
    told = [json.loads(body) for _, _, body in numbered]
    assert [(d["seq"], d["index"]) for d in told] == [(seq, index) for seq, index, _ in numbered]
    assert [(d["kind"], d.get("topic"), d.get("partition"), d.get("broker")) for d in told] == [
        ("stop_replica", "z", 0, None),
        ("broker", None, None, 3),
        ("high_watermark", "a", 9, None),
        ("high_watermark", "a", 10, None),
        ("high_watermark", "b", 0, None),
        ("broker", None, None, 1),
    ]
    assert all(number(shuffled) == numbered for shuffled in itertools.permutations(parts))


def test_free_text_that_looks_like_an_index_is_left_alone() -> None:
    rejected = Rejected(**COMMON, seq=1, raw='{"index":0}', field="", message="")
    body = number([part_of(broker(1)), part_of(rejected)])[1][2]
    assert (json.loads(body)["index"], json.loads(body)["raw"]) == (1, '{"index":0}')


def test_two_decisions_in_one_place_are_a_bug_that_does_not_stop_the_batch() -> None:
    assert parts_clash(map(part_of, [watermark("a", 0), watermark("b", 0), watermark("a", 0)]))
    apart = [watermark("a", 0), watermark("a", 1), watermark("a", 0, seq=2), broker(1), broker(1)]
    assert not parts_clash(map(part_of, apart))
    numbered = number([part_of(watermark("a", 0)), part_of(watermark("a", 0))])
    assert [(seq, index) for seq, index, _ in numbered] == [(1, 0), (1, 1)]


def rejected(reason: Reason, message: str = "") -> Rejected:
    return Rejected(**(COMMON | {"reason": reason}), seq=1, raw="RULES_FAILED", field="", message=message)


def test_one_refusal_per_reason_is_reported() -> None:
    """Shards may come in any order, and one may refuse an event that others fail on."""
    refused = rejected(Reason.REQUEST_REFUSED)
    decisions = [refused, rejected(Reason.RULES_FAILED, "one"), rejected(Reason.RULES_FAILED, "other")]
    assert not parts_clash(map(part_of, decisions))
    for shuffled in itertools.permutations(decisions):
        told = [json.loads(body) for _, _, body in number(map(part_of, shuffled))]
        assert [(d["index"], d["reason"], d["message"]) for d in told] == [
            (0, "REQUEST_REFUSED", ""),
            (1, "RULES_FAILED", "one"),
        ]


def test_withheld_partitions_have_places_of_their_own() -> None:
    parts = [
        part_of(Rejected(**COMMON, seq=1, raw="", field="partition", message="", topic="t", partition=p))
        for p in (1, 0)
    ]
    assert [json.loads(body)["partition"] for _, _, body in number(parts)] == [0, 1]


@pytest.mark.parametrize(
    ("shares", "remaining", "state"),
    [((0, 0), 0, "shutdown_allowed"), ((2, 0), 2, "controlled_shutdown"), ((2, 3), 5, "controlled_shutdown")],
)
def test_remaining_partitions_of_a_shutdown_are_added_up(shares: tuple[int, ...], remaining: int, state: str) -> None:
    parts = []
    for share in shares:
        said = "controlled_shutdown" if share else "shutdown_allowed"
        parts += [part_of(broker(1, state=said, remaining=share)), part_of(answer(remaining=share))]
    merged = [json.loads(body) for _, _, body in number(parts)]
    assert [(d["kind"], d["remaining"]) for d in merged] == [("broker", remaining), ("answer", remaining)]
    assert merged[0]["state"] == state


def test_results_are_joined_and_the_first_refusal_is_the_answers_error() -> None:
    refused: dict[str, Any] = {"error": "B", "message": "B of 4", "reason": Reason.REQUEST_REFUSED}
    parts = [
        answer(results=(result(4, "B"),), **refused),
        answer(results=(result(1, "NONE"), result(3, "C")), error="C", message="C of 3"),
        answer(results=()),
    ]
    (merged,) = [json.loads(body) for _, _, body in number(part_of(part) for part in parts)]
    assert [(r["partition"], r["error"]) for r in merged["results"]] == [(1, "NONE"), (3, "C"), (4, "B")]
    assert (merged["error"], merged["message"], merged["reason"]) == ("C", "C of 3", "REQUEST_REFUSED")


def test_results_without_refusal_are_answered_with_none() -> None:
    parts = [answer(results=(result(4, "NONE"),)), answer(results=())]
    (merged,) = [json.loads(body) for _, _, body in number(part_of(part) for part in parts)]
    assert (merged["error"], merged["reason"]) == ("NONE", "REQUEST_DONE")


def test_a_shard_that_refuses_decides_the_answer_of_all() -> None:
    refused: dict[str, Any] = {"message": "why", "reason": Reason.REQUEST_REFUSED}
    parts = [part_of(answer(remaining=2)), *(part_of(answer(error=error, **refused)) for error in "BA")]
    (merged,) = [json.loads(body) for _, _, body in number(parts)]
    assert (merged["error"], merged["message"], merged["remaining"]) == ("A", "why", 2)


def test_refusals_are_kept_before_successes_where_an_answer_has_too_many_results(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(canonical, "RESULTS_MAX", 3)
    lists = ([result(0, "NONE"), result(5, "C"), result(2, "NONE")], [result(4, "B"), result(1, "NONE")])
    first, other = [bounded(results, left_out) for results, left_out in zip(lists, (4, 0), strict=True)]
    assert (first[1], other[1]) == (4, UNSET)
    parts = [part_of(answer(results=results, results_left_out=left_out)) for results, left_out in (first, other)]
    (merged,) = [json.loads(body) for _, _, body in number(parts)]
    assert [r["partition"] for r in merged["results"]] == [0, 4, 5]
    assert merged["results_left_out"] == 6


def test_counts_of_imbalance_are_added_up_and_none_is_no_decision() -> None:
    counts: list[dict[int, tuple[int, int]]] = [{2: (0, 4), 1: (1, 3)}, {3: (0, 2), 1: (2, 5)}]
    parts = [part_of(Imbalance(**COMMON, seq=1, counts=one)) for one in counts]
    (merged,) = [json.loads(body) for _, _, body in number(parts)]
    assert list(merged["counts"].items()) == [("1", [3, 8]), ("2", [0, 4]), ("3", [0, 2])]
    assert number([part_of(Imbalance(**COMMON, seq=1, counts={1: (0, 3)}))]) == []
