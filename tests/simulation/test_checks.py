"""Each check of decisions refuses a wrong trace."""

from typing import Any

import pytest
from msgspec.structs import replace

from state.broker import Broker, BrokerState
from state.cluster import Cluster
from state.decisions import (
    AnyDecision,
    BrokerDecision,
    HighWatermark,
    LeaderAndIsr,
    Rejected,
    TopicDecision,
)
from state.events import AnyEvent, LogEndOffset, Logged, TopicPartition
from state.reason import Reason
from tests.simulation.decisions_seen import DecisionsSeen
from tests.simulation.engine import Batch
from tests.simulation.records_seen import shape_of, step_of
from tests.simulation.violations import Found

PLACE = TopicPartition("t", 0)
SAID: dict[str, Any] = {"seq": 7, "controller_epoch": 2, "time_ms": 0, "reason": Reason.REQUEST_DONE}
GOOD = LeaderAndIsr(
    **SAID,
    topic="t",
    topic_id="id",
    partition=0,
    leader=1,
    leader_epoch=4,
    isr=(1, 2),
    partition_epoch=9,
    replicas=(1, 2, 3),
    adding_replicas=(),
    removing_replicas=(),
    leader_recovery_state="RECOVERED",
    is_new=False,
    unclean=False,
    to=(1, 2, 3),
)
NEXT = replace(GOOD, partition_epoch=10)


def broken_by(record: LeaderAndIsr) -> list[str]:
    return [invariant for invariant, _ in shape_of(record)]


def broken_between(before: LeaderAndIsr, now: LeaderAndIsr) -> list[str]:
    return [invariant for invariant, _ in step_of(before, now)]


def test_correct_records_are_not_refused() -> None:
    assert broken_by(GOOD) == []
    assert broken_by(replace(GOOD, replicas=(1, 2, 3, 4), adding_replicas=(2,), removing_replicas=(3, 4))) == []
    assert broken_between(GOOD, NEXT) == []
    assert broken_between(GOOD, replace(NEXT, leader=2, leader_epoch=5, isr=(2,))) == []
    unclean = replace(NEXT, leader=3, leader_epoch=5, isr=(3,), unclean=True, leader_recovery_state="RECOVERING")
    assert broken_between(GOOD, unclean) == []


@pytest.mark.parametrize(
    ("invariant", "fields"),
    [
        ("A8", {"isr": (1, 4)}),
        ("A8", {"isr": (1, 2, 2)}),
        ("A10", {"isr": (2,)}),
        ("A12", {"adding_replicas": (4,)}),
        ("A12", {"adding_replicas": (3,), "removing_replicas": (3,)}),
        ("A12", {"removing_replicas": (2,)}),
        ("A12", {"replicas": (2, 3), "isr": (1, 2)}),
        ("A13", {"leader_recovery_state": "RECOVERING"}),
        ("A14", {"replicas": (1, 2, 2)}),
    ],
)
def test_an_impossible_record_is_found(invariant: str, fields: dict[str, Any]) -> None:
    assert invariant in broken_by(replace(GOOD, **fields))


@pytest.mark.parametrize(
    ("invariant", "fields"),
    [
        ("A13", {"leader": 1, "isr": (1,), "leader_recovery_state": "RECOVERING"}),
        ("B1", {"partition_epoch": 8}),
        ("B1", {"partition_epoch": 11}),
        ("B1", {"leader_epoch": 3}),
        ("B1", {"partition_epoch": 9, "isr": (1,)}),
        ("B2", {"partition_epoch": 9, "leader_epoch": 5}),
        ("B4", {"leader": 2}),
        ("E1", {"leader": 3, "leader_epoch": 5, "isr": (3,)}),
        ("E1", {"leader": 2, "leader_epoch": 5, "unclean": True}),
    ],
)
def test_an_impossible_successor_is_found(invariant: str, fields: dict[str, Any]) -> None:
    assert invariant in broken_between(GOOD, replace(NEXT, **fields))


# Decisions in their order


def broker(state: BrokerState = BrokerState.active, epoch: int = 3) -> Broker:
    return Broker(1, epoch, "i", state, None, (), (), 0)


def said(state: str, epoch: int = 3) -> BrokerDecision:
    return BrokerDecision(**SAID, broker=1, broker_epoch=epoch, incarnation="i", state=state, rack=None, listeners=())


def topic(min_isr: int) -> TopicDecision:
    config = {"min.insync.replicas": str(min_isr)}
    return TopicDecision(**SAID, topic="t", topic_id="id", state="created", config=config)


def log_end(member: int, end: int, leader_epoch: int = 4) -> LogEndOffset:
    where: dict[str, Any] = {"topic": "t", "partition": 0, "broker": member}
    return LogEndOffset(time_ms=0, leader_epoch=leader_epoch, log_end_offset=end, **where)


def committed(high_watermark: int) -> HighWatermark:
    return HighWatermark(**SAID, topic="t", partition=0, leader_epoch=4, high_watermark=high_watermark)


def judged(
    events: list[AnyEvent], decisions: list[AnyDecision], brokers: list[dict[int, Broker]] | None = None
) -> list[str]:
    found = Found()
    seen = DecisionsSeen(found.violated, found.row)
    clusters = [Cluster(shard=shard, brokers=held) for shard, held in enumerate(brokers or [{}])]
    seen.begin(Batch([Logged(5, 0, event, b"") for event in events], decisions, clusters, {}))
    for decision in decisions:
        seen.look_at(decision)
    if brokers is not None:
        seen.end(clusters)
    return found


def test_every_shard_has_the_brokers_that_were_decided() -> None:
    assert judged([], [said("active")], [{1: broker()}, {1: broker()}]) == []
    assert "A7" in judged([], [said("fenced")], [{1: broker()}])
    assert "A7" in judged([], [said("active", epoch=2)], [{1: broker()}])
    going = {1: broker(BrokerState.controlled_shutdown)}
    assert judged([], [said("active"), said("shutdown_allowed")], [going]) == []
    assert judged([], [said("fenced"), said("shutdown_allowed")], [{1: broker(BrokerState.fenced)}]) == []
    assert "A7" in judged([], [said("active")], [{1: broker()}, {1: broker(BrokerState.fenced)}])


def test_a_fenced_member_must_be_alone_in_the_isr() -> None:
    fenced = {1: broker(BrokerState.fenced)}
    assert "A11" in judged([], [said("fenced"), GOOD], [fenced])
    assert judged([], [said("fenced"), replace(GOOD, isr=(1,))], [fenced]) == []


def test_a_topic_begins_with_as_many_replicas_everywhere() -> None:
    first = replace(GOOD, is_new=True)
    assert judged([], [first, replace(first, partition=1)]) == []
    assert judged([], [first, replace(first, partition=1, replicas=(1, 2))]) == ["A14"]


def test_an_epoch_has_one_leader_and_no_older_controller() -> None:
    assert "B3" in judged([], [GOOD, replace(NEXT, leader=2)])
    assert judged([], [GOOD, replace(NEXT, controller_epoch=1)]) == ["B11"]


def test_a_watermark_needs_the_whole_isr_in_its_epoch() -> None:
    assert judged([log_end(1, 5), log_end(2, 6)], [topic(1), GOOD, committed(5)]) == []
    assert "C5" in judged([log_end(1, 5)], [topic(1), GOOD, committed(5)])
    assert "C5" in judged([log_end(1, 5), log_end(2, 4)], [topic(1), GOOD, committed(5)])
    assert "C5" in judged([log_end(1, 5), log_end(2, 6, leader_epoch=3)], [topic(1), GOOD, committed(5)])
    assert "C5" in judged([], [topic(1), committed(5)])


def test_a_watermark_does_not_rise_below_min_isr() -> None:
    assert judged([log_end(1, 5), log_end(2, 6)], [topic(3), GOOD, committed(5)]) == ["C7"]


@pytest.mark.parametrize("reason", [Reason.INVARIANT_BROKEN, Reason.RULES_FAILED])
def test_no_change_is_withheld(reason: Reason) -> None:
    rejected = Rejected(**(SAID | {"reason": reason}), raw="", field="", message="")
    assert judged([], [rejected]) == ["E2"]
