"""A gateway's view of the quorum and the brokers, and of deletions that brokers have not read yet."""

import asyncio

import msgspec
import pytest
from msgspec.structs import replace

from brokers.engine.event_queue import QueueFullError
from brokers.gateways.kraft import quorum_view as module
from brokers.gateways.kraft.deletions import Deletions
from brokers.gateways.kraft.quorum_view import BrokerView, QuorumView
from brokers.wire.server import Peer
from bus.image import Held
from state.broker import Broker, BrokerState
from state.cluster import Cluster
from state.decisions import AnyDecision, BrokerDecision, QuorumDecision, Rejected, StopReplica, TopicDecision
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

KNOWN = Broker(3, 7, "i", BrokerState.active, None, (), (), 0)
SAID = {"seq": 1, "controller_epoch": 1, "time_ms": 1, "reason": Reason.GATEWAY_STARTED}


def new_view() -> QuorumView:
    return QuorumView(100, "mine", lambda broker, epoch, offset: None)


def quorum(voter: int, incarnation: str, epoch: int) -> QuorumDecision:
    return QuorumDecision(**SAID, voter=voter, incarnation=incarnation, voters=(100, 101), quorum_epoch=epoch)


def broker(number: int, state: str, epoch: int = 1) -> BrokerDecision:
    fields = {"incarnation": "i", "rack": None, "listeners": ()}
    return BrokerDecision(**SAID, broker=number, broker_epoch=epoch, state=state, **fields)


def test_a_gateway_leads_only_in_the_run_that_was_elected() -> None:
    held = new_view()
    held.apply([quorum(100, "former", 1)], 1)
    assert (held.leads, held.superseded, held.quorum_epoch) == (False, False, 1)
    held.apply([quorum(100, "mine", 2)], 2)
    assert (held.leads, held.superseded) == (True, False)
    held.apply([quorum(100, "later", 3)], 3)
    assert (held.leads, held.superseded) == (False, True)


def test_a_gateway_stands_by_when_another_voter_leads() -> None:
    held = new_view()
    held.apply([quorum(100, "mine", 1)], 1)
    held.apply([quorum(101, "other", 2)], 2)
    assert (held.leads, held.superseded, held.leader) == (False, False, 101)


def test_a_registration_after_the_start_is_found_by_its_offset() -> None:
    held = new_view()
    registered = broker(1, "fenced", 7)
    held.apply([registered], 40)
    held.apply([msgspec.structs.replace(registered, reason=Reason.BROKER_REGISTERED)], 60)
    assert held.brokers[1].registered_by == 60


def test_a_registration_is_known_by_the_log_end_that_it_led_to() -> None:
    held = new_view()
    held.apply([broker(1, "fenced", 7)], 40)
    held.apply([broker(1, "active", 7)], 50)
    assert (held.brokers[1].registered_by, held.brokers[1].is_serving) == (40, True)
    held.apply([broker(1, "shutdown_allowed", 7)], 60)
    assert held.brokers[1].state == "controlled_shutdown"
    held.apply([broker(1, "fenced", 61)], 62)
    assert (held.brokers[1].registered_by, held.brokers[1].is_serving) == (62, False)
    held.apply([broker(1, "unregistered", 61)], 63)
    assert held.brokers == {}


def test_the_others_have_followed_when_all_active_brokers_fetch_from_the_end() -> None:
    async def story() -> list[bool]:
        held = new_view()
        held.apply([broker(1, "active"), broker(2, "active"), broker(3, "fenced")], 5)
        first = await held.until_followed(5, but=1, timeout_ms=20)
        waiting = asyncio.ensure_future(held.until_followed(5, but=1, timeout_ms=10_000))
        await asyncio.sleep(0)
        held.has_fetched(2, 4, 20)
        held.has_fetched(2, 5, 20)
        return [first, await waiting]

    assert asyncio.run(story()) == [False, True]


def test_only_the_connection_of_the_last_heartbeat_counts() -> None:
    held, first, second = new_view(), Peer(), Peer()
    held.connected(1, first)
    held.connected(1, second)
    assert held.disconnected(first) is None
    assert held.disconnected(second) == 1
    assert held.disconnected(second) is None


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


def test_a_broker_is_connected_until_the_connection_of_its_last_heartbeat_ends() -> None:
    held, here, there = new_view(), Peer(), Peer()
    assert not held.is_connected(1)
    held.connected(1, here)
    held.connected(1, there)
    held.disconnected(here)
    assert held.is_connected(1)
    held.disconnected(there)
    assert not held.is_connected(1)


def test_a_broker_that_has_served_has_listened_in_this_incarnation() -> None:
    held = new_view()
    held.apply([broker(1, "fenced")], 1)
    assert not held.brokers[1].has_served
    held.apply([broker(1, "active"), broker(1, "fenced")], 2)
    assert held.brokers[1].has_served
    held.apply([broker(1, "fenced", 2)], 3)
    assert not held.brokers[1].has_served
    held.begin_from(Cluster(brokers={3: KNOWN, 4: replace(KNOWN, broker=4, state=BrokerState.fenced)}), 5)
    assert (held.brokers[3].has_served, held.brokers[4].has_served) == (True, False)


@pytest.mark.parametrize(("state", "epoch"), [(TopicState.deleting, -2), (TopicState.created, 4)])
def test_deletions_under_way_are_continued_after_a_start(state: TopicState, epoch: int) -> None:
    deleting, online = ReplicaState.ReplicaDeletionStarted, ReplicaState.OnlineReplica
    removed = (RemovedReplica(3, 3, deleting), RemovedReplica(4, 3, ReplicaState.ReplicaDeletionIneligible))
    partition = Partition(
        0, PartitionState.OnlinePartition, (1, 2), (deleting, online), (2,), 2, leader_epoch=4, removed=removed
    )
    deletions, reported = reports()
    deletions.begin_from(Held(Cluster(), [Topic("t", "id", state, {}, (partition,))]), 10)
    for number in (1, 2, 3, 4):
        deletions.has_fetched(number, 7, 10)
    assert [(report.broker, report.leader_epoch) for report in reported] == [(1, epoch), (3, epoch)]


def moved(topic_id: str = "id", state: ReplicaState = ReplicaState.ReplicaDeletionStarted) -> Held:
    """Return a state in which broker 1 has yet to remove its replica of t-0."""
    removed = (RemovedReplica(1, 3, state),)
    online = ReplicaState.OnlineReplica
    partition = Partition(0, PartitionState.OnlinePartition, (2,), (online,), (2,), 2, leader_epoch=4, removed=removed)
    return Held(Cluster(), [Topic("t", topic_id, TopicState.created, {}, (partition,))])


def test_a_gateway_that_begins_to_lead_reports_only_deletions_that_are_under_way() -> None:
    deletions, reported = reports()
    # The former leader has reported that brokers 2 and 3 removed theirs. No decision shows it.
    deletions.apply([stop(1, 2, 3, leader_epoch=4)], 10)
    deletions.begin_to_lead()
    assert deletions.unsettled.is_set()
    for settled in (False, True):
        if settled:
            deletions.settle(moved())
        for number in (1, 2, 3):
            deletions.has_fetched(number, 7, 20)
        assert [(report.broker, report.leader_epoch) for report in reported] == ([(1, 4)] if settled else [])


@pytest.mark.parametrize("held", [moved("other"), moved(state=ReplicaState.ReplicaDeletionIneligible)])
def test_a_deletion_of_another_topic_or_one_that_waits_is_not_under_way(held: Held) -> None:
    deletions, reported = reports()
    deletions.apply([stop(1, leader_epoch=4)], 10)
    deletions.begin_to_lead()
    deletions.settle(held)
    deletions.has_fetched(1, 7, 20)
    assert reported == []


def test_deletions_that_are_decided_while_a_gateway_leads_need_not_be_settled() -> None:
    deletions, reported = reports()
    deletions.begin_to_lead()
    assert not deletions.unsettled.is_set(), "there is nothing to settle"
    deletions.apply([stop(1, leader_epoch=3)], 10)
    deletions.begin_to_lead()
    deletions.apply([stop(1, leader_epoch=4)], 20)
    deletions.settle(moved())
    deletions.has_fetched(1, 7, 10)
    assert reported == []
    deletions.has_fetched(1, 7, 20)
    assert [report.leader_epoch for report in reported] == [4]


def test_a_former_deletion_is_forgotten_with_its_topic() -> None:
    deletions, reported = reports()
    deletions.apply([stop(1, leader_epoch=4)], 10)
    deletions.begin_to_lead()
    deletions.apply([TopicDecision(**SAID, topic="t", topic_id="id", state="deleted", config={})], 11)
    deletions.settle(moved())
    deletions.has_fetched(1, 7, 20)
    assert reported == []


def test_a_broker_has_caught_up_when_it_fetches_from_the_former_end(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([10, 20, 30, 40])
    monkeypatch.setattr(module, "now_ms", lambda: next(clock))
    held = QuorumView(100, "mine", lambda *heard: None)
    held.brokers[1] = BrokerView(1, "active", 0)
    reported = []
    for offset, log_end in ((5, 9), (9, 9), (9, 12), (11, 14)):
        held.has_fetched(1, offset, log_end)
        reported.append(held.caught_up_ms.get(1))
    assert reported == [None, 20, 20, 20]
    assert held.fetched_ms[1] == 40
