"""Each check, shown one trace that it must refuse."""

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from isrflow.brokers.mock.replicas.partition import Role
from isrflow.bus.interface import Decided
from isrflow.state.broker import Broker, BrokerState
from isrflow.state.cluster import Cluster
from isrflow.state.decisions import (
    AnyDecision,
    BrokerDecision,
    HighWatermark,
    LeaderAndIsr,
    Rejected,
    TopicDecision,
)
from isrflow.state.events import AlterIsr, AnyEvent, LogEndOffset, Logged, TopicPartition
from isrflow.state.reason import Reason
from tests.simulation.brokers_seen import BrokersSeen
from tests.simulation.clients_seen import ClientsSeen
from tests.simulation.decisions_seen import DecisionsSeen
from tests.simulation.engine import Batch
from tests.simulation.logs_seen import LogsSeen, Record
from tests.simulation.records_seen import shape_of, step_of

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
ASKED = AlterIsr(
    time_ms=1_000,
    request_id="a",
    topic="t",
    partition=0,
    broker=1,
    broker_epoch=3,
    leader_epoch=4,
    partition_epoch=9,
    isr=(1,),
)


class Found(list[str]):
    """Gather the invariants that are violated."""

    def violated(self, invariant: str, what: str) -> None:
        self.append(invariant)

    def row(self, who: str, what: str, more: str) -> None: ...


def broken_by(record: LeaderAndIsr) -> list[str]:
    return [invariant for invariant, _ in shape_of(record)]


def broken_between(before: LeaderAndIsr, now: LeaderAndIsr) -> list[str]:
    return [invariant for invariant, _ in step_of(before, now)]


def test_what_is_right_is_not_refused() -> None:
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
def test_a_record_that_cannot_be(invariant: str, fields: dict[str, Any]) -> None:
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
def test_a_record_that_cannot_follow(invariant: str, fields: dict[str, Any]) -> None:
    assert invariant in broken_between(GOOD, replace(NEXT, **fields))


# Decisions in their order


def broker(state: BrokerState = BrokerState.active, epoch: int = 3) -> Broker:
    return Broker(1, epoch, "i", state, None, (), (), 0)


def said(state: str, epoch: int = 3) -> BrokerDecision:
    return BrokerDecision(**SAID, broker=1, broker_epoch=epoch, incarnation="i", state=state, rack=None, listeners=())


def topic(min_isr: int) -> TopicDecision:
    config = {"min.insync.replicas": str(min_isr)}
    return TopicDecision(**SAID, topic="t", topic_id="id", state="created", config=config)


def told(member: int, end: int, leader_epoch: int = 4) -> LogEndOffset:
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


def test_every_shard_holds_brokers_to_be_what_was_said_of_them() -> None:
    assert judged([], [said("active")], [{1: broker()}, {1: broker()}]) == []
    assert "A7" in judged([], [said("fenced")], [{1: broker()}])
    assert "A7" in judged([], [said("active", epoch=2)], [{1: broker()}])
    assert "A7" in judged([], [said("active")], [{1: broker()}, {1: broker(BrokerState.fenced)}])


def test_a_fenced_member_is_the_only_one() -> None:
    fenced = {1: broker(BrokerState.fenced)}
    assert "A11" in judged([], [said("fenced"), GOOD], [fenced])
    assert judged([], [said("fenced"), replace(GOOD, isr=(1,))], [fenced]) == []


def test_a_topic_begins_with_as_many_replicas_everywhere() -> None:
    first = replace(GOOD, is_new=True)
    assert judged([], [first, replace(first, partition=1)]) == []
    assert judged([], [first, replace(first, partition=1, replicas=(1, 2))]) == ["A14"]


def test_one_leader_in_an_epoch_and_no_older_controller() -> None:
    assert "B3" in judged([], [GOOD, replace(NEXT, leader=2)])
    assert judged([], [GOOD, replace(NEXT, controller_epoch=1)]) == ["B11"]


def test_a_watermark_needs_the_whole_isr_in_its_epoch() -> None:
    assert judged([told(1, 5), told(2, 6)], [topic(1), GOOD, committed(5)]) == []
    assert "C5" in judged([told(1, 5)], [topic(1), GOOD, committed(5)])
    assert "C5" in judged([told(1, 5), told(2, 4)], [topic(1), GOOD, committed(5)])
    assert "C5" in judged([told(1, 5), told(2, 6, leader_epoch=3)], [topic(1), GOOD, committed(5)])
    assert "C5" in judged([], [topic(1), committed(5)])


def test_a_watermark_stands_still_below_min_isr() -> None:
    assert judged([told(1, 5), told(2, 6)], [topic(3), GOOD, committed(5)]) == ["C7"]


@pytest.mark.parametrize("reason", [Reason.INVARIANT_BROKEN, Reason.RULES_FAILED])
def test_no_change_is_withheld(reason: Reason) -> None:
    rejected = Rejected(**(SAID | {"reason": reason}), raw="", field="", message="")
    assert judged([], [rejected]) == ["E2"]


# Brokers


def replica(role: Role = Role.follower, **fields: Any) -> Any:
    held = {"leader": 2, "leader_epoch": 4, "partition_epoch": 9, "isr": (1, 2), "broker": 1, "place": PLACE}
    return SimpleNamespace(role=role, **(held | fields))


@pytest.mark.parametrize(
    ("partition", "fetchers", "wrong"),
    [
        (replica(), [2], []),
        (replica(), [], ["A5"]),
        (replica(), [2, 3], ["A5"]),
        (replica(), [3], ["A5"]),
        (replica(leader=-1), [], []),
        (replica(Role.leader, leader=1), [], []),
        (replica(Role.leader, leader=1), [2], ["A5"]),
    ],
)
def test_a_follower_has_one_fetcher(partition: Any, fetchers: list[int], wrong: list[str]) -> None:
    found = Found()
    BrokersSeen(found.violated).fetchers(partition, fetchers)
    assert found == wrong


def test_who_runs_was_registered() -> None:
    found = Found()
    seen = BrokersSeen(found.violated)
    seen.standing(1, "running", True)
    seen.standing(1, "starting", False)
    assert found == []
    seen.standing(1, "running", False)
    assert found == ["A6"]


@pytest.mark.parametrize(
    ("again", "wrong"),
    [
        ({"request_id": "b", "time_ms": 1_100}, ["B8"]),
        ({"time_ms": 1_100}, []),
        ({"request_id": "b", "time_ms": 1_800}, []),
        ({"request_id": "b", "time_ms": 1_100, "partition_epoch": 10}, []),
        ({"request_id": "b", "time_ms": 1_100, "broker_epoch": 8}, []),
    ],
)
def test_a_leader_asks_for_one_change_at_a_time(again: dict[str, Any], wrong: list[str]) -> None:
    found = Found()
    seen = BrokersSeen(found.violated)
    seen.published([msgspec.json.encode(ASKED)])
    seen.published([msgspec.json.encode(replace(ASKED, **again))])
    assert found == wrong


def test_a_fetch_of_another_epoch_does_not_count() -> None:
    found = Found()
    seen = BrokersSeen(found.violated)
    seen.counted(replica(), 3, SimpleNamespace(current_leader_epoch=4))
    assert found == []
    seen.counted(replica(), 3, SimpleNamespace(current_leader_epoch=3))
    assert found == ["B9"]


def test_decisions_are_taken_in_one_after_the_other() -> None:
    found = Found()
    seen = BrokersSeen(found.violated)
    seen.starts_from(1, (4, 0))
    seen.told(1, (4, 0), [Decided(5, 0, b""), Decided(5, 1, b"")])
    seen.told(1, (5, 1), [Decided(6, 0, b"")])
    assert found == []
    seen.told(1, (7, 0), [])
    assert found == ["B12"]


def test_what_a_broker_holds_was_decided() -> None:
    found = Found()
    seen = BrokersSeen(found.violated)
    seen.holds(replica(leader=1), GOOD)
    assert found == []
    seen.holds(replica(leader=2), GOOD)
    seen.holds(replica(leader=1, isr=(1,)), GOOD)
    seen.holds(replica(leader=1), None)
    assert found == ["B12"] * 3


# Clients


def clients(found: Found, stored: list[Record]) -> ClientsSeen:
    return ClientsSeen(found.violated, found.row, {PLACE: stored}, set())


def test_an_acknowledged_record_is_committed_and_stays() -> None:
    found, logs = Found(), LogsSeen()
    seen = clients(found, [Record(0, 11)])
    logs.of(1, PLACE).append(Record(0, 11))
    seen.acknowledged(PLACE, 0, 0, 11)
    assert (found, seen.vanished(logs)) == ([], None)
    logs.of(1, PLACE).clear()
    assert "is in none" in (seen.vanished(logs) or "")
    seen.acknowledged(PLACE, 0, 0, 12)
    seen.acknowledged(PLACE, 0, 1, 13)
    assert found == ["D4", "D4"]


def test_what_was_refused_for_good_is_not_acknowledged() -> None:
    found = Found()
    seen = clients(found, [Record(0, 11)])
    seen.given_up(PLACE, 11)
    seen.acknowledged(PLACE, 0, 0, 11)
    assert found == ["D10"]
    seen.given_up(PLACE, 11)
    assert found == ["D10", "D10"]


def test_an_idempotent_record_is_stored_once_and_known() -> None:
    found = Found()
    seen = clients(found, [])
    seen.sends_once(11)
    seen.committed(PLACE, [Record(0, 11), Record(0, 12), Record(1, 12)])
    assert found == []
    seen.committed(PLACE, [Record(1, 11)])
    seen.out_of_order(PLACE, 0)
    assert found == ["E3", "E3"]


def test_a_topic_that_has_the_name_of_another_is_judged_by_itself() -> None:
    found = Found()
    seen = clients(found, [])
    seen.sends_once(11)
    seen.committed(PLACE, [Record(0, 11)])
    seen.forget("t")
    seen.committed(PLACE, [Record(0, 11)])
    seen.acknowledged(PLACE, 0, 5, 11)
    seen.out_of_order(PLACE, 0)
    assert found == []
