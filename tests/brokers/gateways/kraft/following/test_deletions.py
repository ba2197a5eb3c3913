"""Deletions that brokers have not read yet, and the reports of those that they have read."""

import msgspec
import pytest
from msgspec.structs import replace

from brokers.engine.event_queue import QueueFullError
from brokers.gateways.kraft.following import deletions as deletions_module
from brokers.gateways.kraft.following.deletions import Deletions, UnderWay, under_way
from brokers.gateways.kraft.following.quorum_view import QuorumView
from bus.image import HeldState
from state.cluster import Cluster
from state.decisions import AnyDecision, BrokerDecision, Rejected, StopReplica, TopicDecision
from state.events import ReplicaReport
from state.partition import (
    Partition,
    PartitionState,
    RemovedReplica,
    ReplicaState,
    Topic,
    TopicState,
)
from state.reason import Reason

SAID = {"seq": 1, "controller_epoch": 1, "time_ms": 1, "reason": Reason.GATEWAY_STARTED}


def broker(number: int, state: str, epoch: int = 1) -> BrokerDecision:
    fields = {"incarnation": "i", "rack": None, "listeners": ()}
    return BrokerDecision(**SAID, broker=number, broker_epoch=epoch, state=state, **fields)


def stop(*to: int, leader_epoch: int = -2, delete: bool = True) -> StopReplica:
    place = {"topic": "t", "topic_id": "id", "partition": 0}
    return StopReplica(**SAID, **place, leader_epoch=leader_epoch, delete=delete, to=to)


def reports() -> tuple[Deletions, list[ReplicaReport]]:
    reported: list[ReplicaReport] = []
    return Deletions(reported.append), reported


def test_a_deletion_is_reported_once_its_broker_has_fetched_past_it() -> None:
    deletions, reported = reports()
    decisions: list[AnyDecision] = [stop(1, 2), stop(3, delete=False)]
    deletions.apply(decisions, 10)
    deletions.has_fetched(1, 7, 9)
    assert reported == []
    for _ in range(2):
        deletions.has_fetched(1, 7, 10)
        deletions.has_fetched(3, 9, 10)
    [report] = reported
    assert (report.broker, report.broker_epoch, report.leader_epoch, report.outcome) == (1, 7, -2, "deleted")
    assert (report.topic, report.topic_id) == ("t", "id")


def test_a_deletion_that_another_gateway_reported_is_forgotten() -> None:
    deletions, reported = reports()
    deletions.apply([stop(1, 2)], 10)
    deletions.apply([TopicDecision(**SAID, topic="t", topic_id="id", state="deleted", config={})], 11)
    deletions.apply([stop(1, 2, leader_epoch=4)], 12)
    deletions.apply([broker(2, "unregistered")], 13)
    for number in (1, 2):
        deletions.has_fetched(number, 7, 20)
    assert [(report.broker, report.leader_epoch) for report in reported] == [(1, 4)]


def refusal_of(report: ReplicaReport) -> Rejected:
    fields = SAID | {"reason": Reason.TIME_AHEAD}
    return Rejected(**fields, raw=msgspec.json.encode(report).decode(), field="time_ms", message="it is far ahead")


def test_a_refused_report_of_a_deletion_is_repeated_once_the_engine_takes_heartbeats() -> None:
    deletions, reported = reports()
    deletions.apply([stop(1)], 10)
    deletions.has_fetched(1, 7, 10)
    deletions.apply([refusal_of(reported[0])], 10)
    deletions.has_fetched(1, 7, 10)
    assert len(reported) == 1, "the engine would refuse it again"
    deletions.retry_refused()
    for _ in range(2):
        deletions.has_fetched(1, 7, 10)
    assert [(report.broker, report.leader_epoch, report.outcome) for report in reported] == [(1, -2, "deleted")] * 2


def test_a_refusal_of_a_report_that_is_not_this_gateways_newest_is_ignored() -> None:
    """Otherwise anybody could make a gateway report that a log is gone."""
    deletions, reported = reports()
    deletions.apply([stop(1, leader_epoch=3)], 10)
    deletions.has_fetched(1, 7, 10)
    deletions.apply([refusal_of(replace(reported[0], broker=2)), refusal_of(replace(reported[0], leader_epoch=2))], 10)
    deletions.retry_refused()
    deletions.apply([refusal_of(reported[0])], 10)
    deletions.apply([TopicDecision(**SAID, topic="t", topic_id="id", state="deleted", config={})], 11)
    deletions.retry_refused()
    for number in (1, 2):
        deletions.has_fetched(number, 7, 20)
    assert len(reported) == 1


def test_the_later_of_two_deletions_of_a_log_is_reported() -> None:
    deletions, reported = reports()
    deletions.apply([stop(1, leader_epoch=3)], 10)
    deletions.apply([stop(1, leader_epoch=5)], 20)
    deletions.has_fetched(1, 7, 15)
    assert reported == []
    deletions.has_fetched(1, 7, 20)
    assert [report.leader_epoch for report in reported] == [5]


def test_a_report_that_the_bus_refuses_is_repeated_with_the_next_fetch() -> None:
    reported: list[ReplicaReport] = []
    room = [False]

    def tell(report: ReplicaReport) -> None:
        if not room[0]:
            raise QueueFullError("full")
        reported.append(report)

    deletions = Deletions(tell)
    held = QuorumView(100, "mine", deletions.has_fetched)
    held.apply([broker(1, "active")], 1)
    deletions.apply([stop(1)], 10)
    held.has_fetched(1, 10, 20)
    assert reported == []
    room[0] = True
    for _ in range(2):
        held.has_fetched(1, 10, 20)
    assert [report.broker for report in reported] == [1]


@pytest.mark.parametrize(("state", "epoch"), [(TopicState.deleting, -2), (TopicState.created, 4)])
def test_deletions_under_way_are_continued_after_a_start(state: TopicState, epoch: int) -> None:
    deleting, online = ReplicaState.ReplicaDeletionStarted, ReplicaState.OnlineReplica
    removed = (RemovedReplica(3, 3, deleting), RemovedReplica(4, 3, ReplicaState.ReplicaDeletionIneligible))
    partition = Partition(
        0, PartitionState.OnlinePartition, (1, 2), (deleting, online), (2,), 2, leader_epoch=4, removed=removed
    )
    deletions, reported = reports()
    deletions.begin_from(HeldState(Cluster(), [Topic("t", "id", state, {}, (partition,))]), 10)
    for number in (1, 2, 3, 4):
        deletions.has_fetched(number, 7, 10)
    assert [(report.broker, report.leader_epoch) for report in reported] == [(1, epoch), (3, epoch)]


def moved(topic_id: str = "id", state: ReplicaState = ReplicaState.ReplicaDeletionStarted) -> HeldState:
    """Return a state in which broker 1 has yet to remove its replica of t-0."""
    removed = (RemovedReplica(1, 3, state),)
    online = ReplicaState.OnlineReplica
    partition = Partition(0, PartitionState.OnlinePartition, (2,), (online,), (2,), 2, leader_epoch=4, removed=removed)
    return HeldState(Cluster(), [Topic("t", topic_id, TopicState.created, {}, (partition,))])


def test_a_gateway_that_begins_to_lead_reports_only_deletions_that_are_under_way() -> None:
    deletions, reported = reports()
    # The former leader has reported that brokers 2 and 3 removed theirs. No decision shows it.
    deletions.apply([stop(1, 2, 3, leader_epoch=4)], 10)
    deletions.begin_to_lead()
    assert deletions.unsettled.is_set()
    for settled in (False, True):
        if settled:
            deletions.settle(under_way(moved()))
        for number in (1, 2, 3):
            deletions.has_fetched(number, 7, 20)
        assert [(report.broker, report.leader_epoch) for report in reported] == ([(1, 4)] if settled else [])


@pytest.mark.parametrize("held", [moved("other"), moved(state=ReplicaState.ReplicaDeletionIneligible)])
def test_a_deletion_of_another_topic_or_one_that_waits_is_not_under_way(held: HeldState) -> None:
    deletions, reported = reports()
    deletions.apply([stop(1, leader_epoch=4)], 10)
    deletions.begin_to_lead()
    deletions.settle(under_way(held))
    deletions.has_fetched(1, 7, 20)
    assert reported == []


def test_deletions_that_are_decided_while_a_gateway_leads_need_not_be_settled() -> None:
    deletions, reported = reports()
    deletions.begin_to_lead()
    assert not deletions.unsettled.is_set(), "there is nothing to settle"
    deletions.apply([stop(1, leader_epoch=3)], 10)
    deletions.begin_to_lead()
    deletions.apply([stop(1, leader_epoch=4)], 20)
    deletions.settle(under_way(moved()))
    deletions.has_fetched(1, 7, 10)
    assert reported == []
    deletions.has_fetched(1, 7, 20)
    assert [report.leader_epoch for report in reported] == [4]


def test_a_former_deletion_is_forgotten_with_its_topic() -> None:
    deletions, reported = reports()
    deletions.apply([stop(1, leader_epoch=4)], 10)
    deletions.begin_to_lead()
    deletions.apply([TopicDecision(**SAID, topic="t", topic_id="id", state="deleted", config={})], 11)
    deletions.settle(under_way(moved()))
    deletions.has_fetched(1, 7, 20)
    assert reported == []


def test_a_gateway_that_hears_of_many_deletions_keeps_those_that_are_under_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deletions_module, "HEARD_MAX", 3)
    deletions, reported = reports()
    for number in range(4):
        assert not deletions.unsettled.is_set()
        deletions.apply([replace(stop(1), partition=number)], 10 + number)
    assert deletions.unsettled.is_set()
    deletions.settle([UnderWay(1, "t", 2, "id", -2)])
    deletions.has_fetched(1, 7, 20)
    assert [report.partition for report in reported] == [2]


def test_a_report_is_not_kept_once_the_engine_has_decided_it() -> None:
    deletions, reported = reports()
    deletions.apply([stop(1)], 10)
    deletions.has_fetched(1, 7, 10)
    deletions.retry_refused()
    # The heartbeat that was accepted may have been published before the report.
    deletions.apply([refusal_of(reported[0])], 10)
    deletions.retry_refused()
    deletions.has_fetched(1, 7, 10)
    assert len(reported) == 2
    deletions.retry_refused()
    deletions.retry_refused()
    deletions.apply([refusal_of(reported[0])], 10)
    deletions.retry_refused()
    deletions.has_fetched(1, 7, 10)
    assert len(reported) == 2, "nothing of it is left"
