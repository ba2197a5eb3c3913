"""An admin request that no controller decided in time is refused by the next one."""

from typing import Any

import msgspec
import pytest

from controller_logic.deadline import expires_ms
from controller_logic.replay import decide, logged
from state.event import AdminEvent
from state.events import AnyEvent
from state.policy import Policy

T = 1_000_000
Line = tuple[int, bytes, int | None, bool | None]

ASKED: dict[str, dict[str, Any]] = {
    "create_topic": {"topic": "new", "partitions": 1, "replication_factor": 1},
    "delete_topic": {"topic": "t"},
    "create_partitions": {"topic": "t", "total": 3},
    "alter_reassignment": {"topic": "t", "partition": 0, "replicas": [2]},
    "elect_leaders": {"election_type": "unclean", "partitions": None},
    "alter_config": {"entity": "topic", "name": "t", "config": {"retention.ms": "1"}},
    "broker_unregister": {"broker": 2},
    "raise_level": {"level": 1},
    "create_acls": {"acls": []},
    "delete_acls": {"filters": [{}]},
    "alter_entity": {"entity_type": "client_quota", "names": {"user": "a"}, "values": {"producer_byte_rate": 1}},
    "adopt_topic": {"topic": "new", "topic_id": "TP9lxr6dp7ZsOP5Q0S-ctQ", "partitions": [{"replicas": [1]}]},
}


def line(seq: int, kind: str, at_ms: int, **fields: Any) -> Line:
    raw = msgspec.json.encode({"kind": kind, "time_ms": T + at_ms} | fields)
    return seq, raw, T + at_ms, kind == "controller_started"


def claim(seq: int, epoch: int, at_ms: int, **fields: Any) -> Line:
    told = {"controller_id": "c", "controller_epoch": epoch} | fields
    return line(seq, "controller_started", at_ms, **told)


def scene() -> list[Line]:
    lines = [claim(1, 1, 0)]
    for seq, broker in ((2, 1), (4, 2)):
        lines.append(line(seq, "broker_register", 0, broker=broker, incarnation="a"))
        beat = {"broker": broker, "broker_epoch": seq, "want_fence": False, "want_shutdown": False}
        lines.append(line(seq + 1, "broker_heartbeat", 0, **beat))
    lines.append(line(6, "create_topic", 0, topic="t", assignment={"0": [1], "1": [2]}))
    return lines


def decisions(lines: list[Line], **how: Any) -> list[dict[str, Any]]:
    return [msgspec.json.decode(body) for _, _, body in decide(lines, Policy(), **how).decisions]


def brought_by(lines: list[Line], seq: int) -> list[dict[str, Any]]:
    return [one for one in decisions(lines) if one["seq"] == seq]


def test_every_admin_event_is_tried() -> None:
    kinds = {kind.__struct_config__.tag for kind in AnyEvent.__args__ if issubclass(kind, AdminEvent)}
    assert kinds == set(ASKED)


@pytest.mark.parametrize("kind", ASKED)
def test_an_expired_request_is_answered_and_not_carried_out(kind: str) -> None:
    asked = line(7, kind, 100, request_id="r", timeout_ms=20_000, **ASKED[kind])
    [answer] = brought_by([*scene(), asked, claim(8, 2, 3_600_000, decided_seq=6)], 7)
    assert (answer["kind"], answer["error"], answer["request_id"]) == ("answer", "REQUEST_TIMED_OUT", "r")
    assert "nobody decided it for 3599900 ms, and 20000 ms were allowed" in answer["message"]


@pytest.mark.parametrize(
    ("fields", "started"),
    [
        ({}, {"decided_seq": 6}),
        ({"timeout_ms": 20_000}, {"decided_seq": 7}),
        ({"timeout_ms": 20_000}, {}),
        ({"timeout_ms": 3_599_901}, {"decided_seq": 6}),
    ],
    ids=["no deadline", "decided before", "a claim by an older engine", "in time"],
)
def test_other_events_never_expire(fields: dict[str, Any], started: dict[str, Any]) -> None:
    asked = line(7, "create_topic", 100, request_id="r", **ASKED["create_topic"], **fields)
    brought = brought_by([*scene(), asked, claim(8, 2, 3_600_000, **started)], 7)
    assert [one["error"] for one in brought if one["kind"] == "answer"] == ["NONE"]


def test_a_request_that_waited_for_exactly_its_time_has_expired() -> None:
    asked = line(7, "create_topic", 100, request_id="r", timeout_ms=3_599_900, **ASKED["create_topic"])
    [answer] = brought_by([*scene(), asked, claim(8, 2, 3_600_000, decided_seq=6)], 7)
    assert answer["error"] == "REQUEST_TIMED_OUT"


def test_a_forged_claim_expires_nothing() -> None:
    asked = line(7, "create_topic", 100, request_id="r", timeout_ms=1, **ASKED["create_topic"])
    forged = (*claim(8, 2, 3_600_000, decided_seq=0)[:3], False)
    brought = brought_by([*scene(), asked, forged], 7)
    assert [one["error"] for one in brought if one["kind"] == "answer"] == ["NONE"]


def test_the_deadline_counts_from_the_requests_own_time() -> None:
    seq, raw, _, is_claim = line(7, "create_topic", 100, request_id="r", timeout_ms=20_000, **ASKED["create_topic"])
    lines: list[Line] = [*scene(), (seq, raw, T + 15_100, is_claim), claim(8, 2, 21_000, decided_seq=6)]
    [answer] = brought_by(lines, 7)
    assert answer["error"] == "REQUEST_TIMED_OUT"


def test_expiry_is_independent_of_batches() -> None:
    asked = [
        line(seq, kind, 100, request_id=kind, timeout_ms=20_000, **fields)
        for seq, (kind, fields) in enumerate(ASKED.items(), start=7)
    ]
    lines = [*scene(), *asked, claim(20, 2, 3_600_000, decided_seq=9), line(21, "tick", 3_600_001)]
    whole = decisions(lines)
    assert {one["request"] for one in whole if one.get("error") == "REQUEST_TIMED_OUT"} == set(list(ASKED)[3:])
    assert decisions(lines, batch_sizes=(1,)) == whole
    assert decisions(lines, shards=3, batch_sizes=(2, 3)) == whole


@pytest.mark.parametrize(
    ("found_ms", "entered_ms", "fields", "expires"),
    [
        (None, T + 300, {"timeout_ms": 50}, T + 350),
        (T + 149, T + 300, {"timeout_ms": 50}, T + 350),
        (T + 150, T + 300, {"timeout_ms": 50}, None),
        (None, None, {"timeout_ms": 50}, None),
        (None, T + 300, {}, None),
    ],
    ids=["never found", "found in time", "found too late", "from a recorded log", "no deadline"],
)
def test_the_bus_says_until_when_a_request_may_be_decided(
    found_ms: int | None, entered_ms: int | None, fields: dict[str, Any], expires: int | None
) -> None:
    _, raw, _, _ = line(7, "create_topic", 100, **ASKED["create_topic"], **fields)
    [asked] = logged([(7, raw, entered_ms, False, found_ms)])
    assert expires_ms(asked) == expires
