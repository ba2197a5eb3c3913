"""A gateway's view of the quorum and the brokers."""

import asyncio

import msgspec
import pytest
from msgspec.structs import replace

from brokers.gateways.kraft.following import quorum_view as module
from brokers.gateways.kraft.following.quorum_view import BrokerView, QuorumView
from brokers.wire.server import Peer
from state.broker import Broker, BrokerState
from state.cluster import Cluster
from state.decisions import BrokerDecision, QuorumDecision
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
