"""Each check of brokers and clients refuses a wrong trace."""

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from brokers.mock.replicas.partition import Role
from bus.interface import Decided
from state.events import AlterIsr
from tests.simulation.brokers_seen import BrokersSeen
from tests.simulation.clients_seen import ClientsSeen
from tests.simulation.logs_seen import LogsSeen, Record
from tests.simulation.test_checks import GOOD, PLACE
from tests.simulation.violations import Found

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


def test_a_running_broker_was_registered() -> None:
    found = Found()
    seen = BrokersSeen(found.violated)
    seen.lifecycle_state(1, "running", True)
    seen.lifecycle_state(1, "starting", False)
    assert found == []
    seen.lifecycle_state(1, "running", False)
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


def test_a_request_that_is_sent_twice_is_one() -> None:
    found = Found()
    seen = BrokersSeen(found.violated)
    later = replace(ASKED, request_id="b", time_ms=1_900)
    for request in (ASKED, later, ASKED, later):
        seen.requested(request)
    assert found == []


def test_a_fetch_of_another_epoch_does_not_count() -> None:
    found = Found()
    seen = BrokersSeen(found.violated)
    seen.counted(replica(), 3, {"CurrentLeaderEpoch": 4})
    assert found == []
    seen.counted(replica(), 3, {"CurrentLeaderEpoch": 3})
    assert found == ["B9"]


def test_decisions_are_applied_in_order() -> None:
    found = Found()
    seen = BrokersSeen(found.violated)
    seen.starts_from(1, (4, 0))
    seen.followed(1, (4, 0), [Decided(5, 0, b""), Decided(5, 1, b"")])
    seen.followed(1, (5, 1), [Decided(6, 0, b"")])
    assert found == []
    seen.followed(1, (7, 0), [])
    assert found == ["B12"]


def test_a_broker_holds_only_what_was_decided() -> None:
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


def test_a_record_refused_for_good_is_not_acknowledged() -> None:
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


def test_a_recreated_topic_is_judged_by_itself() -> None:
    found = Found()
    seen = clients(found, [])
    seen.sends_once(11)
    seen.committed(PLACE, [Record(0, 11)])
    seen.forget("t")
    seen.committed(PLACE, [Record(0, 11)])
    seen.acknowledged(PLACE, 0, 5, 11)
    seen.out_of_order(PLACE, 0)
    assert found == []
